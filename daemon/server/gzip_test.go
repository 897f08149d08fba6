package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// encoded sets an Accept-Encoding header, so that the HTTP client does not decompress the answer.
func (p *pair) encoded(t *testing.T, url, accept, encoding string) (http.Header, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", encoding)
	r.Header.Set("Accept", accept)
	resp, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v: %.200s", url, resp.StatusCode, err, b)
	}
	return resp.Header, b
}

func unpacked(t *testing.T, b []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOnlyLargeAnswersAreCompressed(t *testing.T) {
	cluster := filled(t)
	ns := cluster.Namespace(t)
	p := mirror(t)
	p.caughtUp(t)
	api, err := kubernetes.NewForConfigAndClient(cluster.Config(), p.client)
	if err != nil {
		t.Fatal(err)
	}
	const many = 150 // more than one piece
	last := ""
	for i := range many {
		cm, err := api.CoreV1().ConfigMaps(ns).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cm-%03d", i),
				Labels: map[string]string{"few": fmt.Sprint(i < 30)}},
				Data: map[string]string{"x": strings.Repeat(fmt.Sprintf("%06d ", i*7919%1000000), 650)}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		last = cm.ResourceVersion
	}
	at := "/api/v1/namespaces/" + ns + "/configmaps?resourceVersionMatch=NotOlderThan&resourceVersion=" + last
	for late := time.Now().Add(time.Minute); ; { // each request waits until the mirror has reached the version
		head, body := p.ask(t, http.MethodGet, p.ours+at, "")
		if strings.HasPrefix(head, "200 ") {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("%s: %.300s", head, body)
		}
	}
	for _, c := range []struct {
		name, under, accept string
		packed              bool
	}{
		{"all", "", "application/json", true},
		{"some, which are one piece", "&labelSelector=few%3Dtrue", "application/json", true},
		{"one page", "&limit=120", "application/json", true},
		{"a table", "&includeObject=Object", tables, true},
		{"many that are small", "&limit=100", lists, false},
		{"a table without objects", "&includeObject=None", tables, false},
		{"few", "&limit=3", "application/json", false},
		{"none", "&labelSelector=few%3Dnever", "application/json", false},
	} {
		for _, base := range []string{p.ours + at,
			p.all + strings.Replace(at[:strings.Index(at, "?")+1], ns, mirrored+"."+ns, 1)} {
			_, flat := p.encoded(t, base+c.under, c.accept, "identity")
			head, got := p.encoded(t, base+c.under, c.accept, "deflate, gzip;q=1.0")
			if enc := head.Get("Content-Encoding"); (enc == "gzip") != c.packed || !c.packed && enc != "" {
				t.Errorf("%s: the answer of %d bytes has encoding %q", c.name, len(flat), enc)
				continue
			}
			if c.packed {
				if len(got)*2 > len(flat) || !strings.Contains(head.Get("Vary"), "Accept-Encoding") {
					t.Errorf("%s: %d bytes of %d, Vary: %q", c.name, len(got), len(flat), head.Get("Vary"))
				}
				got = unpacked(t, got)
			}
			if !bytes.Equal(got, flat) && normalised(string(got)) != normalised(string(flat)) {
				t.Errorf("%s differs when compressed: %d bytes, want %d\n%.300s\n%.300s", c.name, len(got), len(flat), got, flat)
			}
			if strings.HasPrefix(base, p.ours) {
				theirs, _ := p.encoded(t, strings.Replace(base, p.ours, p.real, 1)+c.under, c.accept, "gzip")
				if ours := head.Get("Content-Encoding"); theirs.Get("Content-Encoding") != ours {
					t.Errorf("%s: the server's encoding is %q, the mirror's %q", c.name, theirs.Get("Content-Encoding"), ours)
				}
			}
		}
	}
	for _, encoding := range []string{"identity", "gzip;q=0", "br", ""} {
		if head, _ := p.encoded(t, p.ours+at, "application/json", encoding); head.Get("Content-Encoding") != "" {
			t.Errorf("Accept-Encoding %q: the answer has encoding %q", encoding, head.Get("Content-Encoding"))
		}
	}
}

// Without a flush, the header or the last event would be delayed until the next event, and this test would not end:
// it reads every event before it causes the next one.
func TestWatchSendsEachEventAtOnceWithAnyAcceptEncoding(t *testing.T) {
	cluster := filled(t)
	ns := cluster.Namespace(t)
	p := mirror(t)
	p.caughtUp(t)
	k, err := kubernetes.NewForConfigAndClient(cluster.Config(), p.client)
	if err != nil {
		t.Fatal(err)
	}
	api := k.CoreV1().ConfigMaps(ns)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for base, namespace := range map[string]string{p.ours: ns, p.all: mirrored + "." + ns} {
		for _, accept := range []string{"application/json", tables, metas} {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet,
				base+"/api/v1/namespaces/"+namespace+"/configmaps?watch=true", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept-Encoding", "gzip")
			r.Header.Set("Accept", accept)
			resp, err := p.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if enc := resp.Header.Get("Content-Encoding"); enc != "" {
				t.Errorf("a watch has encoding %q", enc)
			}
			line := make([]byte, 64<<10)
			read := func(want string) {
				t.Helper()
				n, err := resp.Body.Read(line)
				if err != nil || !strings.HasPrefix(string(line[:n]), `{"type":"`+want+`"`) ||
					!bytes.HasSuffix(line[:n], []byte("\n")) {
					t.Fatalf("want %s, got %.200s, %v", want, line[:n], err)
				}
			}
			cm, err := api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			read("ADDED")
			cm.Labels = map[string]string{"a": "b"}
			if _, err := api.Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			read("MODIFIED")
			if err := api.Delete(ctx, "x", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			read("DELETED")
			resp.Body.Close()
		}
	}
}
