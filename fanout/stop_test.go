package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/fanout"
)

func TestP9_StopWaitsForRunningCallbacksAndDropsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		g := newGate()
		s := join(t, f, opts{Name: "slow", Handle: g.handle})
		f.Publish(1, []event{add("a", 1), add("b", 1)})
		f.Publish(2, []event{add("c", 1)})
		<-g.entered
		stopped := make(chan error)
		go func() { stopped <- f.Stop(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-stopped:
			t.Fatalf("Stop returned %v during a callback", err)
		case <-s.Done():
			t.Fatal("Done was closed during a callback")
		default:
		}
		g.leave <- struct{}{}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		<-s.Done()
		same(t, "seen", g.all(), []string{"+a 1"})
		if s.Stats().Backlog != 0 || len(f.Subscriptions()) != 0 {
			t.Errorf("after Stop: %+v, %d subscriptions", s.Stats(), len(f.Subscriptions()))
		}
		stop(t, f)
	})
}

func TestP9_StopNamesHandlersThatDoNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		stuck, removed := newGate(), newGate()
		join(t, f, opts{Name: "stuck", Handle: stuck.handle})
		join(t, f, opts{Name: "fine", Handle: func(event) {}})
		gone := join(t, f, opts{Name: "removed", Handle: removed.handle})
		f.Publish(1, []event{add("web/a", 1)})
		<-stuck.entered
		<-removed.entered
		gone.Remove()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := f.Stop(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Stop = %v", err)
		}
		for _, want := range []string{`"stuck" (with "web/a", for 3s)`, `"removed"`} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not name %s", err, want)
			}
		}
		if strings.Contains(err.Error(), "fine") {
			t.Errorf("%v names a handler that has returned", err)
		}
		stuck.leave <- struct{}{}
		removed.leave <- struct{}{}
		stop(t, f)
	})
}

func TestHandlerCanRemoveItselfAndOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		var self, other *sub
		r, later := &recorder{}, &recorder{}
		ready := make(chan struct{})
		self = join(t, f, opts{Handle: func(e event) {
			<-ready
			r.handle(e)
			self.Remove()
			self.Remove()
			other.Remove()
			join(t, f, opts{Name: "later", Handle: later.handle})
		}})
		other = join(t, f, opts{Handle: func(event) { <-ready }})
		f.Publish(1, []event{add("a", 1), add("b", 1)})
		close(ready)
		<-self.Done()
		<-other.Done()
		f.Publish(2, []event{add("c", 1)})
		synctest.Wait()
		same(t, "seen", r.all(), []string{"+a 1"})
		same(t, "seen by the new handler", later.all(), []string{"+c 1"})
		stop(t, f)
	})
}

func TestRemoveEndsReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		ended := make(chan struct{})
		var s *sub
		ready := make(chan struct{})
		r := &recorder{}
		s = join(t, f, opts{
			Handle: func(e event) { <-ready; r.handle(e); s.Remove() },
			Replay: func() fanout.Replay[int] {
				return fanout.Replay[int]{Events: func(yield func(event) bool) {
					defer close(ended)
					for i := 0; yield(add("a", i)); i++ {
					}
				}}
			},
		})
		close(ready)
		<-s.Done()
		<-ended
		same(t, "seen", r.all(), []string{"+a 0!"})
		if s.HasSynced() {
			t.Error("synced without the whole replay")
		}
		stop(t, f)
	})
}

func TestConcurrentJoinRemovePublishAndStop(t *testing.T) {
	f := fanout.New[int](fanout.Options{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 300 {
				s, err := f.Join(opts{
					Handle: func(event) {}, Replay: state(0, add("r", 1)), MaxBacklog: i%5 - 1,
					Resync: time.Microsecond, State: state(uint64(i)),
				})
				if err != nil {
					return // stopped meanwhile
				}
				_ = s.Stats()
				if i%3 != w%3 {
					s.Remove()
					<-s.Done()
				}
			}
		})
	}
	for i := range 2000 {
		f.Publish(uint64(i+1), []event{update(fmt.Sprint(i%5), i, i+1)})
		if i == 100 {
			f.MarkSynced(uint64(i))
		}
	}
	stop(t, f)
	wg.Wait()
	stop(t, f)
}
