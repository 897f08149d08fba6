package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dial opens a watch over a WebSocket.
func (s *testServer) dial(t *testing.T, path string, protocols ...string) *websocket.Conn {
	t.Helper()
	cfg, err := websocket.NewConfig("ws"+strings.TrimPrefix(s.URL, "http")+path, s.URL)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Protocol = protocols
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ws, err := cfg.DialContext(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := ws.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return ws
}

// frame reads one event.
func frame(t *testing.T, ws *websocket.Conn) (e ending, text string) {
	t.Helper()
	if err := websocket.Message.Receive(ws, &text); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatalf("a frame is not an event: %v: %s", err, text)
	}
	return e, text
}

// unwatched waits until no watch is open.
func (s *testServer) unwatched(t *testing.T, after string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(30 * time.Second); !s.watches.empty(); <-tick.C {
		if time.Now().After(late) {
			t.Fatalf("after %s the watch is still open", after)
		}
	}
}

func TestWatchCanBeAWebSocket(t *testing.T) {
	s := newTestServer(t)
	for _, view := range []string{"/clusters/eu", "/fleet"} {
		const initial = "/api/v1/pods?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan" +
			"&allowWatchBookmarks=true"
		ws := s.dial(t, view+initial, "a.example.com", "b.example.com")
		if got := ws.Config().Protocol; len(got) != 1 || got[0] != "a.example.com" {
			t.Errorf("%s: the subprotocol is %q", view, got)
		}
		for _, want := range []string{"ADDED", "ADDED", "BOOKMARK"} {
			if e, text := frame(t, ws); e.Type != want {
				t.Errorf("%s: want %s: %s", view, want, text)
			}
		}
		if w, err := ws.NewFrameWriter(websocket.PingFrame); err != nil {
			t.Error(err)
		} else if _, err := w.Write([]byte("there?")); err != nil {
			t.Error(err)
		}
		pong, err := ws.NewFrameReader()
		if err != nil || pong.PayloadType() != websocket.PongFrame {
			t.Fatalf("%s: a ping is answered by %v, %v", view, pong, err)
		}
		if b, err := io.ReadAll(pong); err != nil || string(b) != "there?" {
			t.Errorf("%s: the pong contains %q, %v", view, b, err)
		}
		s.endFeeds(view, errMerged)
		if e, text := frame(t, ws); e.Type != "ERROR" || e.Object.Code != http.StatusGone {
			t.Errorf("%s: the last event is %s", view, text)
		}
		if err := websocket.Message.Receive(ws, new(string)); err != io.EOF {
			t.Errorf("%s: after the last event: %v", view, err)
		}
		ws.Close()
		s.unwatched(t, "its end")
		ws = s.dial(t, view+initial)
		frame(t, ws)
		ws.Close()
		s.unwatched(t, "the client has closed it")
		ws = s.dial(t, view+"/api/v1/pods?watch=true&resourceVersion="+s.version(t, view))
		junk := make([]byte, 32<<10)
		for range 4 {
			ws.Write(junk) // the connection may be closed by then
		}
		s.unwatched(t, "a client that talks without end")
		ws.Close()
		if ws = s.dial(t, view+"/api/v1/pods?watch=true&resourceVersion=1"); ws != nil {
			if e, text := frame(t, ws); e.Object.Reason != metav1.StatusReasonExpired {
				t.Errorf("%s: a version that is too old: %s", view, text)
			}
			ws.Close()
		}
		s.unwatched(t, "an old version")
	}
	ws := s.dial(t, "/clusters/eu/api/v1/pods?watch=true")
	frame(t, ws)
	s.Stop()
	s.unwatched(t, "a shutdown")
	ws.Close()
}

var upgrade = map[string]string{"Connection": "keep-alive, Upgrade", "Upgrade": "websocket",
	"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}

func upgradeWith(header map[string]string) map[string]string {
	out := map[string]string{}
	for _, h := range []map[string]string{upgrade, header} {
		for k, v := range h {
			out[k] = v
		}
	}
	return out
}

func TestWebSocketOfAnotherOriginIsRefused(t *testing.T) {
	h := guarded(Access{})
	for name, c := range map[string]struct {
		header map[string]string
		want   int
	}{
		"a program": {nil, http.StatusTeapot},
		"our own page": {map[string]string{"Origin": "http://localhost:80", "Sec-Fetch-Site": "same-origin"},
			http.StatusTeapot},
		"another origin": {map[string]string{"Origin": "http://evil.example.com"}, http.StatusForbidden},
		"another port":   {map[string]string{"Origin": "http://localhost:81"}, http.StatusForbidden},
		"no origin":      {map[string]string{"Origin": "null"}, http.StatusForbidden},
		"another site":   {map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		"a program with a token, for its page": {map[string]string{"Origin": "http://localhost:4466",
			"Sec-Fetch-Site": "same-site", "Authorization": "Bearer x"}, http.StatusTeapot},
		"another origin with a token as a subprotocol": {map[string]string{"Origin": "http://evil.example.com",
			"Sec-WebSocket-Protocol": bearerSubprotocol + "eA, a.example.com"}, http.StatusForbidden},
	} {
		if got := ask(h, "GET", "localhost:80", "/fleet/api/v1/pods?watch=true", upgradeWith(c.header)).Code; got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestWebSocketMaySendItsTokenAsASubprotocol(t *testing.T) {
	h := guarded(Access{Token: "secret"})
	encoded := func(token string) string {
		return bearerSubprotocol + base64.RawURLEncoding.EncodeToString([]byte(token))
	}
	for name, c := range map[string]struct {
		header map[string]string
		want   int
	}{
		"the token": {upgradeWith(map[string]string{"Sec-WebSocket-Protocol": encoded("secret") +
			", a.example.com"}), http.StatusTeapot},
		"another": {upgradeWith(map[string]string{"Sec-WebSocket-Protocol": encoded("secre") +
			", a.example.com"}), http.StatusUnauthorized},
		"two": {upgradeWith(map[string]string{"Sec-WebSocket-Protocol": encoded("wrong") + ", " +
			encoded("secret") + ", a.example.com"}), http.StatusUnauthorized},
		"nothing to answer with": {upgradeWith(map[string]string{"Sec-WebSocket-Protocol": encoded("secret")}),
			http.StatusUnauthorized},
		"no base64": {upgradeWith(map[string]string{"Sec-WebSocket-Protocol": bearerSubprotocol + "!, a.example.com"}),
			http.StatusUnauthorized},
		"no WebSocket": {map[string]string{"Sec-WebSocket-Protocol": encoded("secret") + ", a.example.com"},
			http.StatusUnauthorized},
		"none": {upgrade, http.StatusUnauthorized},
	} {
		if got := ask(h, "GET", "localhost", "http://localhost/fleet/api/v1/pods?watch=true", c.header).Code; got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	cfg := websocket.Config{Protocol: []string{encoded("secret"), "a.example.com", "b.example.com"}}
	if err := chooseSubprotocol(&cfg, nil); err != nil || len(cfg.Protocol) != 1 || cfg.Protocol[0] != "a.example.com" {
		t.Errorf("the answer has protocol %q, %v", cfg.Protocol, err)
	}
}
