package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	"k8s.io/client-go/rest"
)

// isRead reports whether a request changes nothing on a real server, and is answered by it in the same way as by a
// mirror. The root of a cluster is the daemon's report about it, and not a list of paths.
func (q *dashboardRequest) isRead() bool {
	read := q.method == "" && q.path != "/" || strings.Contains(q.path, "/self")
	return read && (q.codes[0] < 300 || q.codes[0] == http.StatusNotFound)
}

func TestDashboardsGetTheAnswersOfTheRealServer(t *testing.T) {
	p := mirror(t)
	p.caughtUp(t)
	names := strings.NewReplacer("{ns}", "web", "{node}", "node-1")
	compared := 0
	for _, q := range slices.Concat(headlampRequests, freelensRequests) {
		if !q.isRead() {
			continue
		}
		compared++
		q.path, q.body = names.Replace(q.path), names.Replace(q.body)
		want, got := p.shapeOf(t, p.real, &q), p.shapeOf(t, p.ours, &q)
		if got != want {
			t.Errorf("%s: %s %s\nreal: %s\nours: %s", q.source, q.method, q.path, want, got)
		}
	}
	if compared < 25 {
		t.Errorf("only %d requests were compared", compared)
	}
}

// shapeOf returns what a dashboard depends on in an answer: the status, the type, and the fields of the document. A
// refusal can have another form than that of a real server, which has only a text for some paths.
func (p *pair) shapeOf(t *testing.T, server string, q *dashboardRequest) string {
	t.Helper()
	method := q.method
	if method == "" {
		method = http.MethodGet
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, server+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	if r.Header.Set("Accept", anyType); q.accept != "" {
		r.Header.Set("Accept", q.accept)
	}
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	shape := fmt.Sprint(resp.StatusCode)
	if resp.StatusCode >= 300 {
		return shape
	}
	shape += " " + resp.Header.Get("Content-Type")
	var doc map[string]any
	if json.Unmarshal(b, &doc) != nil {
		return shape + " " + string(b)
	}
	status, _ := doc["status"].(map[string]any)
	return fmt.Sprint(shape, " ", doc["kind"], " ", doc["apiVersion"], " ", slices.Sorted(maps.Keys(doc)), " ",
		status["incomplete"])
}

// Headlamp shows the documentation of a kind from this document (frontend/src/lib/docs.ts), and asks for any type.
func TestOpenAPIV2IsTheJSONOfTheRealServer(t *testing.T) {
	p := mirror(t)
	p.caughtUp(t)
	p.described(t)
	var docs [2]map[string]any
	for i, server := range []string{p.real, p.ours} {
		head, body := p.ask(t, http.MethodGet, server+"/openapi/v2", anyType)
		if want := "200 application/json"; head != want {
			t.Fatalf("%s: the answer is %s, want %s", server, head, want)
		}
		if err := json.Unmarshal([]byte(body), &docs[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range slices.Sorted(maps.Keys(docs[0])) {
		if !reflect.DeepEqual(docs[0][part], docs[1][part]) {
			t.Errorf("%s differs from that of the real server", part)
		}
	}
	if head, _ := p.ask(t, http.MethodGet, p.ours+"/openapi/v2", "text/html"); !strings.HasPrefix(head, "406 ") {
		t.Errorf("a request that accepts neither JSON nor protobuf is answered with %s", head)
	}
}

// The handshake and the frames of a watch are those of a real server.
func TestSocketsOfDashboardsEqualThoseOfTheRealServer(t *testing.T) {
	cluster := filled(t)
	p := mirror(t)
	p.caughtUp(t)
	tls, err := rest.TLSConfigFor(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	const path = "/api/v1/namespaces/web/pods?watch=1&fieldSelector=metadata.name%3Da"
	for _, protocols := range [][]string{nil, {"base64.binary.k8s.io"}} {
		var seen []string
		for _, server := range []string{p.real, p.ours} {
			cfg, err := websocket.NewConfig("ws"+strings.TrimPrefix(server, "http")+path, server)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Protocol, cfg.TlsConfig = protocols, tls
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			ws, err := cfg.DialContext(ctx)
			cancel()
			if err != nil {
				t.Fatalf("%s with %q: %v", server, protocols, err)
			}
			if err := ws.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			frame, err := ws.NewFrameReader()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(frame)
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, fmt.Sprint(ws.Config().Protocol, " ", frame.PayloadType(), " ", string(text)))
			ws.Close()
		}
		if seen[0] != seen[1] {
			t.Errorf("with %q\nreal: %s\nours: %s", protocols, seen[0], seen[1])
		}
	}
}
