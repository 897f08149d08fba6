package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/informertest"
)

// manyPods returns a daemon with one cluster of n pods of 8 KB.
func manyPods(t *testing.T, n int) memoryDaemon {
	t.Helper()
	cluster := informertest.NewServer()
	for i := range n {
		create(t, cluster, pod("web", fmt.Sprintf("pod-%04d", i), map[string]any{
			"spec": map[string]any{"nodeName": fmt.Sprintf("node-%d", i%7),
				"hostname": strings.Repeat(fmt.Sprintf("%08d", i*7919), 1000)}}))
	}
	s := newMemoryDaemon(t, map[string]http.Handler{"eu": cluster})
	s.Start()
	s.ready(t, n)
	return s
}

// slowReader sends a request and reads only the beginning of its answer.
func (s memoryDaemon) slowReader(t *testing.T, path string) (status string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.(*net.TCPConn).SetReadBuffer(4 << 10) // if it fails, the buffer is larger
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(30 * time.Second)) // the read below returns the error
	line, err := bufio.NewReaderSize(conn, 16).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// quickly fails the test unless an answer comes soon.
func (s memoryDaemon) quickly(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client.Do(r)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %d bytes, %v", path, resp.Status, n, err)
	}
}

func TestSlowAndDisconnectingClientsDoNotDelayOthers(t *testing.T) {
	s := manyPods(t, 100)
	t.Run("slow readers do not delay other clients", s.besideSlowReaders)
	t.Run("slow readers of one client are bounded", s.boundedSlowReaders)
	t.Run("requests of disconnected clients hold nothing", s.disconnectingClients)
}

func (s memoryDaemon) besideSlowReaders(t *testing.T) {
	all := "/clusters/eu/api/v1/pods"
	for i := range 74 {
		path := []string{all, "/fleet/api/v1/pods"}[i%2]
		if i >= 64 {
			path += "?watch=true"
		}
		if status := s.slowReader(t, path); status != "HTTP/1.1 200 OK" {
			t.Fatalf("slow reader %d: status %s", i, status)
		}
	}
	for _, path := range []string{all, "/clusters/eu/api/v1/namespaces/web/pods/pod-0001", "/fleet/api/v1/pods",
		all + "?where=" + url.QueryEscape("spec.nodeName == 'node-3'"), all + "?orderBy=spec.hostname"} {
		s.quickly(t, path)
	}
}

// Each slow reader holds memory. A client that has used up its share is refused; another client is not.
func (s memoryDaemon) boundedSlowReaders(t *testing.T) {
	refused := 0
	for range 300 {
		switch status := s.slowReader(t, "/clusters/eu/api/v1/pods"); {
		case strings.HasSuffix(status, "429 Too Many Requests"):
			refused++
		case status != "HTTP/1.1 200 OK":
			t.Fatal(status)
		}
	}
	if refused == 0 || refused > 200 {
		t.Errorf("%d of 300 slow readers were refused", refused)
	}
}

// Requests of clients that disconnect hold nothing: the next client has the whole daemon.
func (s memoryDaemon) disconnectingClients(t *testing.T) {
	paths := []string{"/clusters/eu/api/v1/pods", "/fleet/api/v1/pods?orderBy=spec.hostname",
		"/clusters/eu/api/v1/pods?watch=true",
		"/fleet/api/v1/pods?where=" + url.QueryEscape("spec.hostname.contains('1')"),
		"/clusters/eu/api/v1/pods?watch=true&where=" + url.QueryEscape("spec.nodeName == 'node-1'")}
	var wg sync.WaitGroup
	for i := range 150 {
		wg.Go(func() {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", paths[i%len(paths)])
			if i%2 == 0 {
				conn.Read(make([]byte, 100)) // the client disconnects in any case
			}
		})
	}
	wg.Wait()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(30 * time.Second); !s.Server.Idle(); <-tick.C {
		if time.Now().After(late) {
			t.Fatal("requests of disconnected clients still hold turns, memory or watches")
		}
	}
	s.quickly(t, paths[1])
}
