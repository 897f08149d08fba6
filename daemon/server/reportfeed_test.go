package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
)

// reader is the response writer of a page that follows the report, in fake time.
type reader struct {
	header http.Header
	mu     sync.Mutex
	text   bytes.Buffer
	stuck  chan struct{} // if not nil, writes wait until it is closed
}

func (p *reader) Header() http.Header  { return p.header }
func (p *reader) WriteHeader(int)      {}
func (p *reader) FlushError() error    { return nil }
func (p *reader) halt(c chan struct{}) { p.mu.Lock(); p.stuck = c; p.mu.Unlock() }
func (p *reader) read() (lines []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines = strings.SplitAfter(p.text.String(), "\n")
	return lines[:len(lines)-1]
}

func (p *reader) Write(b []byte) (int, error) {
	p.mu.Lock()
	stuck := p.stuck
	p.mu.Unlock()
	if stuck != nil {
		<-stuck
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

// follow starts a page that follows the report until stop is called.
func follow(srv http.Handler) (p *reader, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	p = &reader{header: http.Header{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.ServeHTTP(p, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/clusters?watch=true", nil))
	}()
	synctest.Wait()
	return p, func() { cancel(); <-done }
}

// updated applies lines to a report, and returns how many of them were whole.
func updated(t *testing.T, lines []string) (report server.Report, whole int) {
	t.Helper()
	for _, line := range lines {
		var u server.ReportUpdate
		if err := json.Unmarshal([]byte(line), &u); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if u.Whole {
			whole++
		}
		report.Update(&u)
	}
	return report, whole
}

// current returns the current report.
func current(t *testing.T, srv http.Handler) (report server.Report) {
	t.Helper()
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/clusters", nil))
	if err := json.Unmarshal(w.Body.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	return report
}

// shape formats a report without the values that change with time.
func shape(report *server.Report) string {
	var b strings.Builder
	for _, c := range report.Clusters {
		fmt.Fprintln(&b, c.Name, c.State, c.Since.UTC(), c.Error, c.Version, c.Origin)
		for _, r := range c.Resources {
			silent := r.LastHeardSeconds >= 120
			r.LastHeardSeconds = 0
			fmt.Fprintln(&b, r, silent)
		}
	}
	return b.String()
}

func TestFollowersOfAnIdleFleetAreSentOnlyHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := manyResources(t, 3, 20, false)
		time.Sleep(time.Minute) // until the changes of the start are over
		p, stop := follow(srv)
		defer stop()
		first := p.read()
		if len(first) != 1 {
			t.Fatalf("%d lines were sent at once", len(first))
		}
		time.Sleep(10 * time.Minute) // each resource gets ten bookmarks
		lines := p.read()
		sent := len(strings.Join(lines[1:], ""))
		t.Logf("the first line has %d bytes; in ten idle minutes %d more lines of %d bytes followed",
			len(first[0]), len(lines)-1, sent)
		if _, whole := updated(t, lines); whole != 1 {
			t.Errorf("the whole report was sent %d times", whole)
		}
		if len(lines) < 60 || sent > 60*250 {
			t.Errorf("in ten idle minutes %d lines and %d bytes were sent", len(lines)-1, sent)
		}
	})
}

func TestFollowersReconstructTheSameReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, fl := manyResources(t, 3, 4, false)
		c, _ := fl.Cluster("c01")
		pods, _ := c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
		quick, stopQuick := follow(srv)
		defer stopQuick()
		slow, stopSlow := follow(srv)
		defer stopSlow()
		goOn := make(chan struct{})
		slow.halt(goOn)
		time.Sleep(500 * time.Millisecond) // between two reports
		for range 40 {
			if _, err := pods.Subscribe(func(*fleet.Event) {}, nil); err != nil { // another handler is a change
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if err := fl.Leave(t.Context(), "c02"); err != nil {
			t.Fatal(err)
		}
		late, stopLate := follow(srv)
		defer stopLate()
		slow.halt(nil)
		close(goOn)
		time.Sleep(5 * time.Second)
		now := current(t, srv)
		want := shape(&now)
		for name, of := range map[string]struct {
			page  *reader
			whole int
		}{"quick": {quick, 1}, "slow": {slow, 2}, "late": {late, 1}} {
			lines := of.page.read()
			report, whole := updated(t, lines)
			if whole != of.whole {
				t.Errorf("the %s page was sent the whole report %d times, want %d", name, whole, of.whole)
			}
			if got := shape(&report); got != want {
				t.Errorf("the %s page shows\n%s\nand the report is\n%s", name, got, want)
			}
			if name == "quick" && len(lines) < 40 {
				t.Errorf("the quick page got %d lines in 40 seconds with a change each", len(lines))
			}
			for _, line := range lines {
				if !strings.Contains(line, `"whole":true`) && len(line) > 1500 {
					t.Errorf("a change of one resource is a line of %d bytes to the %s page: %s", len(line), name, line)
				}
			}
		}
	})
}
