package kube

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// pipes is a listener and a dialer on in-memory connections, because fake time does not work with sockets.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }
func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// onPipes serves h within the test's bubble.
func onPipes(t *testing.T, h http.HandlerFunc) option {
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := &http.Server{Handler: h}
	served := make(chan error)
	go func() { served <- srv.Serve(p) }()
	tr := &http.Transport{DialContext: p.dial}
	t.Cleanup(func() { tr.CloseIdleConnections(); srv.Close(); <-served })
	return httpClient(&http.Client{Transport: tr})
}

func TestWatchOnPipesInFakeTimeLivesAsLongAsItIsFed(t *testing.T) {
	for _, enc := range encodings {
		t.Run(enc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				frame := enc.frame(t, "MODIFIED", enc.object(t, pod("a", "7")))
				s := typedPods(t, append(enc.options, onPipes(t, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", enc.contentType)
					for range 3 {
						time.Sleep(time.Hour)
						w.Write(frame)
						w.(http.Flusher).Flush()
					}
				}))...)
				start := time.Now()
				changes, err := watchAll(t, s, source.WatchOptions{})
				if err != io.EOF || len(changes) != 3 {
					t.Errorf("%d changes, %v", len(changes), err)
				}
				if d := time.Since(start); d != 3*time.Hour {
					t.Errorf("took %v", d)
				}
			})
		})
	}
}

// TestCancelMakesABlockedCallReturn blocks in each place a call can block in.
func TestCancelMakesABlockedCallReturn(t *testing.T) {
	list := encodeProtobuf(t, podList("42", "", pod("a", "7")))
	watch := frameProtobuf(t, "ADDED", encodeProtobuf(t, pod("a", "7")))
	for name, c := range map[string]struct {
		head        bool   // the server answers
		list, watch []byte // with this, and then nothing
	}{
		"before the answer":    {},
		"before the first":     {head: true},
		"in the middle of one": {head: true, list: list[:len(list)-20], watch: watch[:len(watch)-20]},
	} {
		for _, end := range []string{"cancel", "close"} {
			if end == "close" && !c.head {
				continue // there is nothing to close yet
			}
			t.Run(name+" "+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := typedPods(t, onPipes(t, func(w http.ResponseWriter, r *http.Request) {
						if c.head {
							w.Header().Set("Content-Type", protobufType)
							w.WriteHeader(200)
							if r.URL.Query().Has("watch") {
								w.Write(c.watch)
							} else {
								w.Write(c.list)
							}
							w.(http.Flusher).Flush()
						}
						<-r.Context().Done()
					}))
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					opened := make(chan io.Closer, 2)
					ended := make(chan error, 2)
					go func() {
						l, err := s.List(ctx, source.ListOptions{})
						if err == nil {
							opened <- l
							_, err = readAll(l)
						}
						ended <- err
					}()
					go func() {
						w, err := s.Watch(ctx, source.WatchOptions{})
						if err == nil {
							opened <- w
							var got []source.Change[*corev1.Pod]
							got, err = w.Read(got)
							if len(got) > 0 {
								t.Errorf("got %v", got)
							}
						}
						ended <- err
					}()
					synctest.Wait()
					start := time.Now()
					if end == "cancel" {
						cancel()
					} else {
						(<-opened).Close()
						(<-opened).Close()
					}
					for range 2 {
						err := <-ended
						if end == "cancel" && !errors.Is(err, context.Canceled) || end == "close" && !errors.Is(err, errClosed) {
							t.Errorf("ended with %v", err)
						}
					}
					if d := time.Since(start); d != 0 {
						t.Errorf("took %v", d)
					}
				})
			})
		}
	}
}

func TestCancelledContextIsNoticedBeforeWhatIsBuffered(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := typedPods(t, pageSize(1), canned(protobufType, encodeProtobuf(t, podList("42", "", pod("a", "7")))))
	l, err := s.List(ctx, source.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if items, err := l.Read(nil); !errors.Is(err, context.Canceled) || len(items) > 0 {
		t.Errorf("%v, %v", items, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestCompressedListOnASocketIsReadAndACutOneIsNoticed(t *testing.T) {
	for _, enc := range encodings {
		body := enc.object(t, podList("42", "", pod("a", "7"), pod("b", "8")))
		cut := false
		cfg, client := onSocket(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", enc.contentType)
			sent := compress(t, body)
			w.Header().Set("Content-Encoding", "gzip")
			if cut {
				sent = sent[:len(sent)-9]
			}
			w.Write(sent)
		})
		s, err := Typed[*corev1.Pod](cfg, with(append(enc.options, client)...))
		if err != nil {
			t.Fatal(err)
		}
		items, _, err := listAll(t, s, source.ListOptions{})
		if err != nil || len(items) != 2 {
			t.Errorf("%s: %v, %v", enc.name, items, err)
		}
		cut = true
		if _, _, err = listAll(t, s, source.ListOptions{}); err == nil {
			t.Errorf("%s: a cut list went unnoticed", enc.name)
		} else {
			wantReason(t, err, source.Garbled)
		}
	}
}

func TestServerThatHangsUpInAListOnASocketIsNoticed(t *testing.T) {
	body := encodeProtobuf(t, podList("42", "", pod("a", "7"), pod("b", "8")))
	cfg, client := onSocket(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", protobufType)
		w.Write(body[:len(body)-4]) // every item is there; the answer's end is not
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	s, err := Typed[*corev1.Pod](cfg, with(client))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = listAll(t, s, source.ListOptions{})
	wantReason(t, err, source.Garbled)
}

func TestItemsOwnTheirMemory(t *testing.T) {
	for _, enc := range encodings {
		body := enc.object(t, podList("42", "", pod("a", "7")))
		var keep []object.Item[*corev1.Pod]
		l, err := typedPods(t, append(enc.options, canned(enc.contentType, body))...).List(t.Context(), source.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if keep, err = l.Read(keep); err != nil {
			t.Fatal(err)
		}
		buf := l.(*lister[*corev1.Pod]).in.buf
		for i := range buf {
			buf[i] = 0xff
		}
		if p := keep[0]; p.Key != "web/a" || p.Version != "7" || p.Value.Spec.NodeName != "n1" ||
			p.Value.Labels["app"] != "a" {
			t.Errorf("%s: the item changed with the buffer: %+v", enc.name, p)
		}
		l.Close()
	}
	body := encodeJSON(t, podList("42", "", pod("a", "7")))
	l, err := mustRaw(t, canned(jsonType, body)).List(t.Context(), source.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	items, err := l.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	before := string(items[0].Encoded)
	clear(l.(*lister[*RawObject]).in.buf)
	if string(items[0].Encoded) != before || items[0].Key != "web/a" || len(items[0].Encoded) != cap(items[0].Encoded) {
		t.Error("the raw item shares the buffer or wastes memory")
	}
}
