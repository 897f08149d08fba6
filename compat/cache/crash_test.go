package cache_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// crashes are the ways in which a caller's function, or the value that it returns, can cause a panic. Each happens
// once.
var crashes = map[string]func(f *fake){
	"ListFunc panics": func(f *fake) {
		list := f.list
		f.list = func(o metav1.ListOptions) (runtime.Object, error) { f.setList(list); panic("on purpose") }
	},
	"a list is a nil pointer": func(f *fake) {
		list := f.list
		f.list = func(metav1.ListOptions) (runtime.Object, error) { f.setList(list); return (*corev1.PodList)(nil), nil }
	},
	"WatchFunc panics": func(f *fake) {
		f.watchOnce(func() (watch.Interface, error) { panic("on purpose") })
	},
	"a watch is a nil pointer": func(f *fake) {
		f.watchOnce(func() (watch.Interface, error) { return (*watch.FakeWatcher)(nil), nil })
	},
	"an object is a nil pointer": func(f *fake) {
		f.watchOnce(func() (watch.Interface, error) {
			w := watch.NewFakeWithChanSize(1, false)
			w.Add((*corev1.Pod)(nil))
			return w, nil
		})
	},
	"the error handler panics": func(f *fake) {
		list := f.list
		f.list = func(metav1.ListOptions) (runtime.Object, error) {
			f.setList(list)
			return nil, errors.New("on purpose")
		}
	},
}

func (f *fake) setList(list func(metav1.ListOptions) (runtime.Object, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = list
}

// watchOnce sets the answer to the next watch.
func (f *fake) watchOnce(answer func() (watch.Interface, error)) {
	usual := f.watch
	f.watch = func(metav1.ListOptions) (watch.Interface, error) {
		f.mu.Lock()
		f.watch = usual
		f.mu.Unlock()
		return answer()
	}
}

// crashing returns an informer, of this package or of client-go, that will meet one of the crashes.
func crashing(name string, clientGos bool) (cache.SharedInformer, *fake) {
	f := newFake("10", pod("a", "1"))
	crashes[name](f)
	i := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
	if clientGos {
		i = clientgo.NewSharedInformer(notStreaming{f}, &corev1.Pod{}, 0)
	}
	if name == "the error handler panics" {
		_ = i.SetWatchErrorHandler(func(*clientgo.Reflector, error) { panic("on purpose") })
	}
	return i, f
}

type notStreaming struct{ *fake }

func (notStreaming) IsWatchListSemanticsUnSupported() bool { return true }

func TestPanicOfACallersFunctionIsLoggedAndRetried(t *testing.T) {
	crash := utilruntime.ReallyCrash
	handlers := utilruntime.PanicHandlers
	utilruntime.ReallyCrash = false
	defer func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers }()
	for name := range crashes {
		for whose, clientGos := range map[string]bool{"compat": false, "client-go": true} {
			t.Run(name+", "+whose, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					panics := 0
					utilruntime.PanicHandlers = []func(context.Context, any){func(context.Context, any) { panics++ }}
					i, f := crashing(name, clientGos)
					h := &record{}
					addHandler(t, i, h)
					ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logr.Discard()))
					ended := make(chan struct{})
					go func() { defer close(ended); i.RunWithContext(ctx) }()
					defer func() { cancel(); <-ended }()
					time.Sleep(time.Minute)
					synctest.Wait()
					if !i.HasSynced() {
						t.Error("the informer has not synced after a minute")
					}
					if panics == 0 {
						t.Error("no panic was logged")
					}
					f.current().Modify(pod("a", "11"))
					synctest.Wait()
					if got := h.take(); len(got) == 0 || got[len(got)-1] != "update a@1->11" {
						t.Errorf("the handler received %q, want an update to version 11 at the end", got)
					}
				})
			})
		}
	}
}

// TestPanicOfACallersFunctionEndsTheProgram runs each crash in a process of its own, with the default value of
// utilruntime.ReallyCrash.
func TestPanicOfACallersFunctionEndsTheProgram(t *testing.T) {
	if name := os.Getenv("COMPAT_CRASH"); name != "" {
		i, _ := crashing(name, false)
		i.Run(t.Context().Done())
		return
	}
	for name := range crashes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$")
			c.Env = append(os.Environ(), "COMPAT_CRASH="+name)
			if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "panic: ") {
				t.Errorf("the process did not panic (%v):\n%.500s", err, out)
			}
		})
	}
}

func TestReflectorRecoversPanicsInRunAndNotInListAndWatch(t *testing.T) {
	crash := utilruntime.ReallyCrash
	handlers := utilruntime.PanicHandlers
	utilruntime.ReallyCrash = false
	defer func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers }()
	for _, name := range []string{"ListFunc panics", "an object is a nil pointer", "the store panics"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				panics := 0
				utilruntime.PanicHandlers = []func(context.Context, any){func(context.Context, any) { panics++ }}
				f := newFake("10", pod("a", "1"))
				s := &panickingStore{Store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
				if make, ok := crashes[name]; ok {
					make(f)
				} else {
					s.next = true
				}
				ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logr.Discard()))
				r := cache.NewNamedReflector("r", f, &corev1.Pod{}, s, 0)
				ended := make(chan struct{})
				go func() { defer close(ended); r.RunWithContext(ctx) }()
				time.Sleep(time.Minute)
				synctest.Wait()
				f.current().Modify(pod("a", "11"))
				synctest.Wait()
				if rv := r.LastSyncResourceVersion(); rv != "11" || panics == 0 {
					t.Errorf("the version is %q after %d panics, want 11 after at least one", rv, panics)
				}
				cancel()
				<-ended

				f.setList(func(metav1.ListOptions) (runtime.Object, error) { panic("passes") })
				defer func() {
					if p := recover(); p != "passes" {
						t.Errorf("recovered %v, want the panic of ListFunc", p)
					}
				}()
				_ = r.ListAndWatchWithContext(t.Context())
			})
		})
	}
}

type panickingStore struct {
	cache.Store
	next bool
}

func (s *panickingStore) Replace(list []any, rv string) error {
	if s.next {
		s.next = false
		panic("on purpose")
	}
	return s.Store.Replace(list, rv)
}

func TestP11_WatchFuncThatReturnsNilAfterTheStopDoesNotPanic(t *testing.T) {
	crash := utilruntime.ReallyCrash
	handlers := utilruntime.PanicHandlers
	utilruntime.ReallyCrash = false
	defer func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers }()
	synctest.Test(t, func(t *testing.T) {
		utilruntime.PanicHandlers = []func(context.Context, any){func(_ context.Context, p any) { t.Errorf("panic: %v", p) }}
		f := newFake("10")
		release := make(chan struct{})
		f.watch = func(metav1.ListOptions) (watch.Interface, error) {
			<-release
			return nil, nil
		}
		stop := start(t, cache.NewSharedInformer(f, &corev1.Pod{}, 0))
		stop()
		close(release)
		synctest.Wait()
	})
}
