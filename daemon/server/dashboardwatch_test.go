package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/mirador-k8s/mirador/informertest"
)

// dashboardEvent is an event of a watch, as far as dashboards read it.
type dashboardEvent struct {
	Type   string
	Object struct {
		Kind     string
		Code     int
		Metadata *struct {
			UID, Name, ResourceVersion string
			Labels                     map[string]string
		}
	}
}

// dashboardList is a list that a dashboard keeps up to date: for each UID the name and the label n of an object.
type dashboardList struct {
	version string
	items   map[string]string
}

// dashboardList reads a list of pods.
func (s memoryDaemon) dashboardList(t *testing.T, name, path string, header http.Header) *dashboardList {
	t.Helper()
	got := s.replay(t, name, &dashboardRequest{path: path}, header)
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []struct {
			Metadata struct {
				UID, Name, ResourceVersion string
				Labels                     map[string]string
			}
		}
	}
	if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.code != http.StatusOK {
		t.Fatalf("%s: %d %v %s", path, got.code, err, got.body)
	}
	l := &dashboardList{version: list.Metadata.ResourceVersion, items: map[string]string{}}
	for _, it := range list.Items {
		l.items[it.Metadata.UID] = it.Metadata.Name + " " + it.Metadata.Labels["n"]
		if parseInt(t, it.Metadata.ResourceVersion) > parseInt(t, l.version) {
			t.Errorf("%s: an object has version %s in a list of version %s", path, it.Metadata.ResourceVersion, l.version)
		}
	}
	return l
}

// parseInt is that of JavaScript, in which integers from 2^53 on are not exact.
func parseInt(t *testing.T, version string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(version, 10, 53)
	if err != nil {
		t.Errorf("a version is not a number that JavaScript has: %v", err)
	}
	return float64(n)
}

// applyNewer applies an event as Headlamp does (frontend/src/lib/k8s/api/v2/KubeList.ts 023ea4b): only if its version
// is above that of the list, which then has the version of the event.
func (l *dashboardList) applyNewer(t *testing.T, e *dashboardEvent) {
	t.Helper()
	meta := e.Object.Metadata
	if meta == nil {
		t.Fatalf("an event of type %s has no metadata, which Headlamp reads", e.Type)
	}
	if e.Type != "ERROR" && parseInt(t, meta.ResourceVersion) > parseInt(t, l.version) {
		l.apply(e)
	}
}

// apply applies an event as Freelens does (packages/core/src/common/k8s-api/kube-object.store.ts 0a0fa4a).
func (l *dashboardList) apply(e *dashboardEvent) {
	meta := e.Object.Metadata
	l.version = meta.ResourceVersion
	if e.Type == "DELETED" {
		delete(l.items, meta.UID)
		return
	}
	l.items[meta.UID] = meta.Name + " " + meta.Labels["n"]
}

// openSocket opens a watch over a WebSocket with headers that Headlamp passes on. The subprotocol is the one that
// remains after Headlamp has removed its own (frontend/src/lib/k8s/api/v2/webSocket.ts 07d2fce).
func (s memoryDaemon) openSocket(t *testing.T, name, path, origin string, protocols ...string) *websocket.Conn {
	t.Helper()
	cfg, err := websocket.NewConfig("ws"+strings.TrimPrefix(s.URL, "http")+path, origin)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Protocol = protocols
	cfg.Header = http.Header{"Authorization": {"Bearer " + name}, "Sec-Fetch-Site": {"same-origin"}}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ws, err := cfg.DialContext(ctx)
	if err != nil {
		t.Fatalf("%s as %s: %v", path, name, err)
	}
	t.Cleanup(func() { ws.Close() })
	if err := ws.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return ws
}

// nextEvent reads one event, which must be one text frame: Headlamp parses it as JSON, and takes a binary one for the
// output of a program.
func nextEvent(t *testing.T, ws *websocket.Conn) (e dashboardEvent) {
	t.Helper()
	frame, err := ws.NewFrameReader()
	if err != nil {
		t.Fatal(err)
	}
	if frame.PayloadType() != websocket.TextFrame {
		t.Errorf("a frame has type %d", frame.PayloadType())
	}
	b, err := io.ReadAll(frame)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return e
}

// update changes the label n of a pod in namespace web.
func update(t *testing.T, c *informertest.Server, name, n string) {
	t.Helper()
	p := pod("web", name, nil)
	p.SetLabels(map[string]string{"n": n})
	if _, err := c.Update(p); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, c *informertest.Server, name string) {
	t.Helper()
	if _, err := c.Delete(pod("web", name, nil)); err != nil {
		t.Fatal(err)
	}
}

// changePods changes pods of namespace web in every way. last is the name of the last pod.
func changePods(t *testing.T, c *informertest.Server, last string) {
	t.Helper()
	create(t, c, pod("web", last+"-1", nil), pod("web", last+"-2", nil))
	update(t, c, "b", last)
	update(t, c, "a", last)
	remove(t, c, last+"-1")
	update(t, c, "a", last+" again")
	create(t, c, pod("web", last, nil))
}

// dashboardViews are the paths at which dashboards read pods, and as which user.
var dashboardViews = map[string]string{
	"/clusters/eu/api/v1/namespaces/web/pods": "ann", "/fleet/api/v1/namespaces/eu.web/pods": "ann",
	"/fleet/api/v1/pods": "ann", "/clusters/eu/api/v1/pods": "administrator",
}

func TestHeadlampFollowsAListOverAWebSocket(t *testing.T) {
	d, eu := newDashboardDaemon(t)
	number := 0
	for path, name := range dashboardViews {
		number++
		last := fmt.Sprint("last-", number)
		list := d.dashboardList(t, name, path, ofHeadlamp)
		ws := d.openSocket(t, name, path+"?watch=1&resourceVersion="+list.version, ofHeadlamp.Get("Origin"),
			"base64.binary.k8s.io")
		if got := ws.Config().Protocol; len(got) != 1 || got[0] != "base64.binary.k8s.io" {
			t.Errorf("%s: the subprotocol is %q; a browser closes a WebSocket without one that it has asked for", path, got)
		}
		changePods(t, eu, last)
		for e := (dashboardEvent{}); e.Object.Metadata == nil || e.Object.Metadata.Name != last; {
			if e = nextEvent(t, ws); e.Type == "ERROR" {
				t.Fatalf("%s: the watch ends with code %d, after which Headlamp shows an old list", path, e.Object.Code)
			}
			list.applyNewer(t, &e)
		}
		if want := d.dashboardList(t, name, path, nil); !maps.Equal(list.items, want.items) {
			t.Errorf("%s: Headlamp has the pods %v, and the daemon %v", path, list.items, want.items)
		}
		ws.Close()
	}
}

// One object (frontend/src/lib/k8s/api/v2/hooks.ts 005a46b) is read and then watched without a version. Headlamp
// ignores additions and shows the object of every other event.
func TestHeadlampFollowsAnObjectOverAWebSocket(t *testing.T) {
	d, eu := newDashboardDaemon(t)
	for path, name := range dashboardViews {
		if strings.HasSuffix(path, "/v1/pods") {
			continue
		}
		ws := d.openSocket(t, name, path+"?watch=1&fieldSelector="+url.QueryEscape("metadata.name=a"),
			ofHeadlamp.Get("Origin"), "base64.binary.k8s.io")
		if e := nextEvent(t, ws); e.Type != "ADDED" || e.Object.Metadata.Name != "a" {
			t.Errorf("%s: the first event is %+v", path, e)
		}
		update(t, eu, "b", path)
		update(t, eu, "a", path)
		if e := nextEvent(t, ws); e.Type != "MODIFIED" || e.Object.Metadata.Labels["n"] != path {
			t.Errorf("%s: the event after a change is %+v", path, e)
		}
		ws.Close()
	}
	for path, node := range map[string]string{"/clusters/eu": "node-1", "/fleet": "eu:node-1"} {
		ws := d.openSocket(t, "administrator", path+"/api/v1/nodes?watch=1&fieldSelector="+
			url.QueryEscape("metadata.name="+node), ofHeadlamp.Get("Origin"), "base64.binary.k8s.io")
		if e := nextEvent(t, ws); e.Type != "ADDED" || e.Object.Metadata.Name != node {
			t.Errorf("%s: the first event of a node is %+v", path, e)
		}
		ws.Close()
	}
}

// Headlamp's other way to watch (backend/cmd/multiplexer.go 0ab7a5c) opens WebSockets from its Go program: with the
// server of the kubeconfig as Origin, without a subprotocol, and with an empty binary frame and pings from the client.
func TestHeadlampsMultiplexerCanWatch(t *testing.T) {
	d, eu := newDashboardDaemon(t)
	for path, name := range dashboardViews {
		list := d.dashboardList(t, name, path, ofHeadlamp)
		view, _, _ := strings.Cut(path, "/api/")
		ws := d.openSocket(t, name, path+"?watch=1&resourceVersion="+list.version, d.URL+view)
		for _, kind := range []byte{websocket.BinaryFrame, websocket.PingFrame} {
			w, err := ws.NewFrameWriter(kind)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(nil); err != nil {
				t.Fatal(err)
			}
		}
		pong, err := ws.NewFrameReader()
		if err != nil || pong.PayloadType() != websocket.PongFrame {
			t.Fatalf("%s: a ping is answered by %v, %v", path, pong, err)
		}
		if _, err := io.ReadAll(pong); err != nil {
			t.Fatal(err)
		}
		update(t, eu, "a", "multiplexed "+path)
		if e := nextEvent(t, ws); e.Type != "MODIFIED" || e.Object.Metadata.Labels["n"] != "multiplexed "+path {
			t.Errorf("%s: %+v", path, e)
		}
		ws.Close()
	}
}

// An ERROR event that is not a Status with metadata breaks the code of both.
func TestDashboardsUnderstandThatAVersionIsTooOld(t *testing.T) {
	d, eu := newDashboardDaemon(t)
	if err := eu.Compact(eu.Version()); err != nil {
		t.Fatal(err)
	}
	for path, name := range dashboardViews {
		ws := d.openSocket(t, name, path+"?watch=1&resourceVersion=1", ofHeadlamp.Get("Origin"), "base64.binary.k8s.io")
		e := nextEvent(t, ws)
		if e.Type != "ERROR" || e.Object.Kind != "Status" || e.Object.Code != http.StatusGone || e.Object.Metadata == nil {
			t.Errorf("%s: %+v", path, e)
		}
		ws.Close()
	}
}

// Logs and terminals are WebSockets, too (frontend/src/lib/k8s/pod.ts 00b6ca7). A mirror has none, and says so to a
// client that can read the answer to the handshake.
func TestSocketsForLogsAndTerminalsAreRefused(t *testing.T) {
	d, _ := newDashboardDaemon(t)
	upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key":      {"dGhlIHNhbXBsZSBub25jZQ=="},
		"Sec-Websocket-Protocol": {"base64.binary.k8s.io, v4.channel.k8s.io, v3.channel.k8s.io"}}
	maps.Copy(upgrade, ofHeadlamp)
	for _, view := range []string{"/clusters/eu/api/v1/namespaces/web", "/fleet/api/v1/namespaces/eu.web"} {
		for _, what := range []string{"log?container=main&follow=true", "exec?command=sh&stdin=1&tty=1", "attach?tty=true"} {
			got := d.replay(t, "administrator", &dashboardRequest{path: view + "/pods/a/" + what}, upgrade)
			if why := badStatus(got, "this is a read-only mirror"); why != "" || got.code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d %s %s", view, what, got.code, why, got.body)
			}
		}
	}
}

// Freelens follows a list over plain HTTP (packages/utility-features/kube-api/src/kube-api.ts 12db6a8). When a watch
// ends it continues from the version of the last event, and after 410 it relists.
func TestFreelensFollowsAList(t *testing.T) {
	d, eu := newDashboardDaemon(t)
	number := 0
	for path, name := range dashboardViews {
		number++
		last := fmt.Sprint("last-", number)
		list := d.dashboardList(t, name, path, ofFreelens)
		changePods(t, eu, last)
		for seen := false; !seen; {
			seen = d.openFreelensWatch(t, name, path, list).read(t, last, 2)
		}
		if want := d.dashboardList(t, name, path, nil); !maps.Equal(list.items, want.items) {
			t.Errorf("%s: Freelens has the pods %v, and the daemon %v", path, list.items, want.items)
		}
	}
}

// A mirror that has missed changes relists, and the client is disconnected after each event.
func TestFreelensMissesNothingWhenTheMirrorRelists(t *testing.T) {
	d, eu := newDashboardDaemon(t)
	const path = "/clusters/eu/api/v1/namespaces/web/pods"
	untilPods := func(n int) {
		t.Helper()
		until(t, func() string {
			if l := d.dashboardList(t, "ann", path, nil); len(l.items) != n {
				return fmt.Sprintf("the mirror has the pods %v, not %d", l.items, n)
			}
			return ""
		})
	}
	create(t, eu, pod("web", "gone", nil))
	untilPods(3)
	list := d.dashboardList(t, "ann", path, ofFreelens)
	watch := d.openFreelensWatch(t, "ann", path, list)
	eu.Stall()
	update(t, eu, "b", "missed")
	update(t, eu, "a", "missed")
	remove(t, eu, "gone")
	if err := eu.Compact(eu.Version()); err != nil {
		t.Fatal(err)
	}
	eu.CutWatches()
	until(t, func() string {
		if n := eu.OpenWatches(); n > 0 {
			return fmt.Sprint(n, " watches of the mirror are open")
		}
		return ""
	})
	eu.Resume()
	untilPods(2)
	create(t, eu, pod("web", "last", nil))
	for !watch.read(t, "last", 1) {
		watch = d.openFreelensWatch(t, "ann", path, list)
	}
	if want := d.dashboardList(t, "ann", path, nil); !maps.Equal(list.items, want.items) {
		t.Errorf("Freelens has the pods %v, and the daemon %v", list.items, want.items)
	}
}

// freelensWatch is an open watch of Freelens.
type freelensWatch struct {
	lines  *bufio.Scanner
	close  func()
	list   *dashboardList
	relist func() *dashboardList
}

// openFreelensWatch opens a watch that continues from the version of a list.
func (s memoryDaemon) openFreelensWatch(t *testing.T, name, path string, list *dashboardList) *freelensWatch {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path+"?watch=1&resourceVersion="+list.version+
		"&timeoutSeconds=600", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = ofFreelens.Clone()
	r.Header.Set("Authorization", "Bearer "+name)
	r.Header.Set("Content-Type", "application/json") // also of a GET
	resp, err := s.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return &freelensWatch{bufio.NewScanner(resp.Body), func() { resp.Body.Close(); cancel() }, list,
		func() *dashboardList { return s.dashboardList(t, name, path, ofFreelens) }}
}

// read applies some events and closes the watch. It reports whether one of them was about the last pod.
func (w *freelensWatch) read(t *testing.T, last string, events int) (seen bool) {
	t.Helper()
	defer w.close()
	for range events {
		if !w.lines.Scan() {
			t.Fatalf("the watch has ended: %v", w.lines.Err())
		}
		var e dashboardEvent
		if err := json.Unmarshal(w.lines.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, w.lines.Bytes())
		}
		if e.Type == "ERROR" && e.Object.Kind == "Status" && e.Object.Code == http.StatusGone {
			*w.list = *w.relist()
			return slices.Contains(slices.Collect(maps.Values(w.list.items)), last+" ")
		}
		if e.Object.Metadata == nil || e.Object.Metadata.UID == "" || e.Object.Metadata.ResourceVersion == "" {
			t.Fatalf("Freelens ignores %s", w.lines.Bytes())
		}
		if w.list.apply(&e); e.Object.Metadata.Name == last {
			return true
		}
	}
	return false
}
