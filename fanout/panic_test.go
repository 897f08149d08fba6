package fanout_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/object"
)

func TestP7_PanickingHandlerContinuesWithNextEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports []string
		f := fanout.New[int](fanout.Options{OnPanic: func(handler string, key object.Key, recovered any, stack []byte) {
			if !strings.Contains(string(stack), "panic_test.go") {
				t.Errorf("the stack does not show the handler:\n%s", stack)
			}
			reports = append(reports, fmt.Sprint(handler, " ", key, " ", recovered))
		}})
		r, other := &recorder{}, &recorder{}
		var first []any
		s := join(t, f, opts{Name: "wild", OnPanic: func(recovered any) {
			first = append(first, recovered, len(reports))
			panic("in OnPanic too")
		}, Replay: state(0, add("r", 1), add("q", 2)), Handle: func(e event) {
			if e.New%2 == 1 {
				panic(fmt.Sprint("odd ", e.New))
			}
			r.handle(e)
		}})
		join(t, f, opts{Handle: other.handle})
		f.Publish(1, []event{add("a", 3), add("b", 4)})
		f.MarkSynced(1)
		<-s.Synced()
		synctest.Wait()
		same(t, "seen", r.all(), []string{"+q 2!", "+b 4"})
		same(t, "seen by the other handler", other.all(), []string{"+a 3", "+b 4"})
		same(t, "reported", reports, []string{"wild r odd 1", "wild a odd 3"})
		same(t, "passed to the handler's OnPanic", first, []any{"odd 1", 0, "odd 3", 1})
		if st := s.Stats(); st.Panics != 2 || st.Delivered != 4 {
			t.Errorf("stats: %+v", st)
		}
		stop(t, f)
	})
}

// An OnPanic function may end the goroutine, as t.FailNow does, and so may a callback that panics while Goexit runs
// its deferred functions. The handler continues in any case, and ends when it is stopped.
func TestP7_GoexitDuringPanicBlocksNoHandler(t *testing.T) {
	for name, c := range map[string]struct {
		options fanout.Options
		onPanic func(any)
		fail    func()
	}{
		"handler's OnPanic": {fanout.Options{OnPanic: func(string, object.Key, any, []byte) {}},
			func(any) { runtime.Goexit() }, func() { panic("odd") }},
		"fanout's OnPanic": {fanout.Options{OnPanic: func(string, object.Key, any, []byte) { runtime.Goexit() }}, nil,
			func() { panic("odd") }},
		"panic during Goexit": {fanout.Options{OnPanic: func(string, object.Key, any, []byte) {}}, nil, func() {
			defer panic("during Goexit")
			runtime.Goexit()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fanout.New[int](c.options)
				r, other := &recorder{}, &recorder{}
				s := join(t, f, opts{OnPanic: c.onPanic, Handle: func(e event) {
					r.handle(e)
					if e.New%2 == 1 {
						c.fail()
					}
				}})
				join(t, f, opts{Handle: other.handle})
				want := []string{"+a 1", "+b 2", "+c 3", "+d 4"}
				f.Publish(1, []event{add("a", 1), add("b", 2)})
				f.Publish(2, []event{add("c", 3)})
				synctest.Wait()
				f.Publish(3, []event{add("d", 4)})
				synctest.Wait()
				same(t, "seen", r.all(), want)
				same(t, "seen by the other handler", other.all(), want)
				stop(t, f)
				<-s.Done()
			})
		})
	}
}

func TestP7_HandlerContinuesAfterGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports []string
		f := fanout.New[int](fanout.Options{OnPanic: func(_ string, key object.Key, recovered any, _ []byte) {
			reports = append(reports, fmt.Sprint(key, ": ", recovered))
		}})
		r := &recorder{}
		s := join(t, f, opts{OnPanic: func(recovered any) {
			if recovered != nil {
				t.Errorf("OnPanic was called with %v after Goexit, want nil", recovered)
			}
		}, Replay: state(0, add("r", 1), add("q", 2)), Handle: func(e event) {
			r.handle(e)
			if e.New%2 == 1 {
				runtime.Goexit()
			}
		}})
		f.Publish(1, []event{add("a", 3), add("b", 4), add("c", 5)})
		f.MarkSynced(1)
		<-s.Synced()
		f.Publish(2, []event{add("d", 7)})
		synctest.Wait()
		same(t, "seen", r.all(), []string{"+r 1!", "+q 2!", "+a 3", "+b 4", "+c 5", "+d 7"})
		if len(reports) != 4 || !strings.Contains(reports[0], "Goexit") {
			t.Errorf("reported: %q", reports)
		}
		stop(t, f)
		<-s.Done()
	})
}

func TestPanicInOnPanicIsCaught(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{OnPanic: func(string, object.Key, any, []byte) { panic("second") }})
		s := join(t, f, opts{Handle: func(event) { panic("first") }})
		f.Publish(1, []event{add("a", 1), add("b", 1)})
		synctest.Wait()
		if st := s.Stats(); st.Panics != 2 || st.Delivered != 2 {
			t.Errorf("stats: %+v", st)
		}
		stop(t, f)
	})
}

func TestHandlerWhoseReplayPanicsIsNeverSynced(t *testing.T) {
	for name, replay := range map[string]func() fanout.Replay[int]{
		"at once": func() fanout.Replay[int] { panic("no state") },
		"after one object": func() fanout.Replay[int] {
			return fanout.Replay[int]{Events: func(yield func(event) bool) { yield(add("r", 1)); panic("no more") }}
		},
		"by Goexit after one object": func() fanout.Replay[int] {
			return fanout.Replay[int]{Events: func(yield func(event) bool) { yield(add("r", 1)); runtime.Goexit() }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reported := 0
				f := fanout.New[int](fanout.Options{OnPanic: func(string, object.Key, any, []byte) { reported++ }})
				r := &recorder{}
				s := join(t, f, opts{Handle: r.handle, Replay: replay})
				synctest.Wait()
				f.Publish(1, []event{add("a", 1)})
				f.MarkSynced(1)
				synctest.Wait()
				if got := r.all(); len(got) == 0 || got[len(got)-1] != "+a 1" {
					t.Errorf("seen: %v", got)
				}
				if s.HasSynced() {
					t.Error("synced without the state")
				}
				if !strings.Contains(name, "Goexit") && reported != 1 {
					t.Errorf("reported %d times, want once", reported)
				}
				stop(t, f)
			})
		})
	}
}

// crash is the program that TestCrashEndsProgramAfterOnPanic runs.
func crash() {
	f := fanout.New[int](fanout.Options{
		OnPanic: func(handler string, key object.Key, recovered any, _ []byte) {
			fmt.Println("OnPanic:", handler, key, recovered)
		},
		Crash: func() bool { return true },
	})
	_, _ = f.Join(opts{Name: "wild", Handle: func(event) { panic("on purpose") }})
	f.Publish(1, []event{add("a", 1), add("b", 1)})
	select {}
}

func TestCrashEndsProgramAfterOnPanic(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "FANOUT_TEST_CRASH=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("the program ended without an error")
	}
	for _, want := range []string{"OnPanic: wild a on purpose", "panic: on purpose", "panic_test.go"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "OnPanic: wild b") {
		t.Error("delivery continued after the crash")
	}
}
