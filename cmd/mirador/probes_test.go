package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
)

func TestProbesHaveAnAddressOfTheirOwnAndNameNoCluster(t *testing.T) {
	fl := inMemory(t, "eu")
	srv, err := server.New(fl, server.Options{Access: server.Access{Token: token}})
	check(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	probes, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	ctx, terminate := context.WithCancel(t.Context())
	defer terminate()
	s := &service{fleet: fl, server: srv, files: &credentials{}, log: slog.New(slog.DiscardHandler), probes: probes}
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx, listener) }()

	client := plain(t)
	ask := func(method, path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+probes.Addr().String()+path, nil)
		check(t, err)
		r.Host = "10.244.0.7:8081" // a kubelet names the pod by its IP
		resp, err := client.Do(r)
		check(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		check(t, err)
		return resp.StatusCode, string(body)
	}
	until(t, func() string {
		if code, body := ask(http.MethodGet, "/readyz"); code != http.StatusOK {
			return "the daemon does not become ready: " + body
		}
		return ""
	})
	for _, path := range []string{"/livez", "/healthz", "/readyz", "/readyz?verbose"} {
		if code, body := ask(http.MethodGet, path); code != http.StatusOK || body != "ok" {
			t.Errorf("%s: %d %s", path, code, body)
		}
		if code, body := ask(http.MethodPost, path); code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d %s", path, code, body)
		}
	}
	for _, path := range []string{"/", "/clusters", "/metrics", "/fleet/readyz", "/clusters/eu/readyz", "/readyz/"} {
		if code, body := ask(http.MethodGet, path); code != http.StatusNotFound || strings.Contains(body, "eu") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	terminate()
	check(t, <-ended)
}

func TestRequestsGoOnForTheShutdownDelayWhileTheDaemonIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fl, err := fleet.New(fleet.Options{Logger: slog.New(slog.DiscardHandler)})
		check(t, err)
		srv, err := server.New(fl, server.Options{StartGrace: -1})
		check(t, err)
		ctx, terminate := context.WithCancel(t.Context())
		running, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- srv.Run(running) }()
		defer func() {
			stop()
			check(t, <-served)
		}()
		expect := func(when, path string, code int, word string) {
			t.Helper()
			w := httptest.NewRecorder()
			srv.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
			if w.Code != code || !strings.Contains(w.Body.String(), word) {
				t.Errorf("%s: %s is answered %d %s", when, path, w.Code, w.Body)
			}
		}
		s := &service{fleet: fl, server: srv, log: slog.New(slog.DiscardHandler), shutdownDelay: time.Minute}
		ended := make(chan struct{})
		go func() { defer close(ended); s.untilEnd(ctx, t.Context()) }()
		synctest.Wait()
		expect("before", "/readyz", http.StatusOK, "ok")
		terminate()
		began := time.Now()
		synctest.Wait()
		expect("after the signal", "/readyz", http.StatusServiceUnavailable, "the daemon is stopping")
		expect("after the signal", "/livez", http.StatusOK, "ok")
		expect("after the signal", "/clusters", http.StatusOK, "clusters")
		<-ended
		if took := time.Since(began); took != time.Minute {
			t.Errorf("requests went on for %s", took)
		}

		// A part that fails ends everything at once.
		failed, fail := context.WithCancel(t.Context())
		fail()
		s.untilEnd(t.Context(), failed)
		s.untilEnd(ctx, failed)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("after the failure of a part, requests went on for %s", took-time.Minute)
		}
	})
}
