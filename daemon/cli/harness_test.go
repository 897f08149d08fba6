package cli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// said has the output and the exit code of a command.
type said struct {
	out, errs string
	err       error
	code      int
}

// run runs one command as main does.
func run(t *testing.T, stdin string, args ...string) said {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	err := runIn(ctx, strings.NewReader(stdin), &out, &errs, args...)
	return said{out.String(), errs.String(), err, ExitCode(err)}
}

func runIn(ctx context.Context, in io.Reader, out, errs io.Writer, args ...string) error {
	root := &cobra.Command{Use: "mirador", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands()...)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	return root.ExecuteContext(ctx)
}

// ok runs a command that must succeed, and returns its output.
func ok(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	s := run(t, stdin, args...)
	if s.err != nil {
		t.Fatalf("mirador %s: %v\n%s", strings.Join(args, " "), s.err, s.errs)
	}
	return s.out
}

// fails runs a command that must fail with an exit code and a text.
func fails(t *testing.T, code int, names string, args ...string) said {
	t.Helper()
	s := run(t, "", args...)
	if s.code != code || s.err == nil || !strings.Contains(s.err.Error(), names) {
		t.Errorf("mirador %s: exit code %d and %v; want %d and an error with %q", strings.Join(args, " "),
			s.code, s.err, code, names)
	}
	return s
}

// fake returns a session with a server in memory that the test implements.
func fake(t *testing.T, h http.HandlerFunc) *session {
	t.Helper()
	l := newInMemory()
	web := &http.Server{Handler: h}
	var wg sync.WaitGroup
	wg.Go(func() { web.Serve(l) }) // ends with the test
	transport := &http.Transport{DialContext: l.dial, DisableCompression: true}
	s := &session{base: &url.URL{Scheme: "http", Host: "localhost"}, http: &http.Client{Transport: transport},
		warn: io.Discard, namespace: "default"}
	s.end = func() {
		web.Close()
		l.Close()
		wg.Wait()
	}
	return s
}

var pods = &mapping{gvr: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
	gvk:      schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
	singular: "pod", namespaced: true}

// screen is an output that a test can wait for.
type screen struct {
	mu      sync.Mutex
	b       bytes.Buffer
	written chan struct{}
}

func newScreen() *screen { return &screen{written: make(chan struct{}, 1)} }

// Write adds to the screen.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.written <- struct{}{}:
	default:
	}
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// await waits until the screen shows a text.
func (s *screen) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(time.Minute)
	for !strings.Contains(s.String(), text) {
		select {
		case <-s.written:
		case <-late:
			t.Fatalf("%q was never shown; the screen has:\n%s", text, s)
		}
	}
}
