package cache_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/informer"
)

// relist makes the informer relist.
func (f *fake) relist() {
	expired := apierrors.NewResourceExpired("too old")
	f.current().Action(watch.Error, &expired.ErrStatus)
	synctest.Wait()
}

func addHandler(t *testing.T, i cache.SharedInformer, h cache.ResourceEventHandler,
	every ...time.Duration) cache.ResourceEventHandlerRegistration {
	t.Helper()
	o := cache.HandlerOptions{}
	if len(every) > 0 {
		o.ResyncPeriod = &every[0]
	}
	reg, err := i.AddEventHandlerWithOptions(h, o)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func TestRelistIsStoredThenDeletionsThenOtherEventsInListOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10", pod("a", "1"), pod("b", "2"), pod("c", "3"))
		i := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
		h := &record{}
		stored := -1
		addHandler(t, i, cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { stored = len(i.GetStore().List()) }})
		addHandler(t, i, h)
		start(t, i)
		assertStrings(t, "first", h.take(), "add a@1 initial=true", "add b@2 initial=true", "add c@3 initial=true")

		f.set("20", pod("a", "1"), pod("d", "15"), pod("c", "16"))
		f.relist()
		assertStrings(t, "after the relist", h.take(), "missed delete web/b@2", "update a@1->1",
			"add d@15 initial=false", "update c@3->16")
		if stored != 3 {
			t.Errorf("%d objects were stored at the deletion event, want the 3 of the new list", stored)
		}
		if rv := i.LastSyncResourceVersion(); rv != "20" {
			t.Errorf("version %q", rv)
		}
		if rv := i.GetStore().LastStoreSyncResourceVersion(); rv != "20" {
			t.Errorf("the store's version is %q", rv)
		}
	})
}

func TestEventsAreAppliedWithoutComparingVersionsAndUIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10", pod("a", "9"))
		i := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
		h := &record{}
		addHandler(t, i, h)
		start(t, i)
		h.take()
		w := f.current()
		w.Modify(pod("a", "3")) // an older version
		other := pod("a", "4")
		other.UID = "other"
		w.Modify(other)            // another object of the same name
		w.Delete(pod("zzz", "11")) // unknown
		w.Delete(pod("a", "12"))
		synctest.Wait()
		assertStrings(t, "received", h.take(), "update a@9->3", "update a@3->4", "delete zzz@11", "delete a@12")
	})
}

func TestLateHandlerReceivesTheStoreAndDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10", pod("a", "1"), pod("b", "2"))
		i := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
		h := &record{}
		addHandler(t, i, h)
		start(t, i)
		h.take()

		hold := make(chan struct{})
		late := &record{}
		reg := addHandler(t, i, cache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(obj any, initial bool) { <-hold; late.OnAdd(obj, initial) },
			UpdateFunc: late.OnUpdate,
		})
		f.current().Modify(pod("a", "11"))
		synctest.Wait()
		assertStrings(t, "received by the other handler", h.take(), "update a@1->11")
		if reg.HasSynced() {
			t.Error("the late handler has synced before it received anything")
		}
		close(hold)
		synctest.Wait()
		if !reg.HasSynced() || !cache.IsDone(reg.HasSyncedChecker()) {
			t.Error("the late handler has not synced")
		}
		if got := late.take(); len(got) != 3 || got[2] != "update a@1->11" && got[2] != "add a@11 initial=true" {
			t.Errorf("the late handler received %q", got)
		}
	})
}

func TestWriteToTheStoreIsReadableAndCausesNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10", pod("a", "1"))
		i := cache.NewSharedIndexInformer(f, &corev1.Pod{}, 0,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		h := &record{}
		addHandler(t, i, h)
		for _, p := range []*corev1.Pod{pod("a", "0"), pod("by-hand", "0")} {
			if err := i.GetIndexer().Add(p); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := i.GetIndexer().ByIndex(cache.NamespaceIndex, "web"); err != nil || len(got) != 2 {
			t.Errorf("by index: %v, %v", got, err)
		}
		synctest.Wait()
		assertStrings(t, "received before the start", h.take())
		start(t, i)
		assertStrings(t, "received after the start", h.take(), "missed delete web/by-hand@0", "update a@0->1")
		if err := i.GetIndexer().Add(pod("later", "0")); err != nil {
			t.Fatal(err)
		}
		addHandler(t, i, h)
		synctest.Wait()
		if got := h.take(); len(got) != 2 {
			t.Errorf("a late handler received %q, want both objects", got)
		}
	})
}

func TestP12_FailingTransformKeepsTheStoredState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10", pod("a", "1"), pod("bad", "2"), pod("nil", "3"), pod("panic", "4"))
		fail := false
		i := cache.With(cache.Options{}).NewSharedInformer(f, &corev1.Pod{}, 0)
		if err := i.SetTransform(func(obj any) (any, error) {
			p := obj.(*corev1.Pod)
			if fail {
				switch p.Name {
				case "bad":
					return nil, errors.New("no")
				case "nil":
					return nil, nil
				case "panic":
					panic("no")
				}
			}
			p.Labels = map[string]string{"seen": "yes"}
			return p, nil
		}); err != nil {
			t.Fatal(err)
		}
		h := &record{}
		addHandler(t, i, h)
		start(t, i)
		h.take()
		fail = true
		f.set("20", pod("a", "11"), pod("bad", "12"), pod("nil", "13"), pod("panic", "14"))
		f.relist()
		assertStrings(t, "received", h.take(), "update a@1->11")
		f.current().Modify(pod("bad", "21"))
		f.current().Modify(pod("a", "22"))
		synctest.Wait()
		assertStrings(t, "received", h.take(), "update a@11->22")
		if n := len(i.GetStore().List()); n != 4 {
			t.Errorf("%d objects are stored, want all 4", n)
		}
		engine, _ := cache.Engine(i)
		if n := engine.Health().Problems["decode"]; n != 4 {
			t.Errorf("%d problems were counted, want 4", n)
		}
	})
}

func TestDeleteOfAnObjectThatWasNeverStoredCausesNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10", pod("a", "1"))
		i := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
		if err := i.SetTransform(func(obj any) (any, error) {
			if obj.(*corev1.Pod).Name == "bad" {
				return nil, errors.New("no")
			}
			return obj, nil
		}); err != nil {
			t.Fatal(err)
		}
		var deleted []any
		addHandler(t, i, cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) { deleted = append(deleted, obj) }})
		start(t, i)
		w := f.current()
		w.Add(pod("bad", "11"))
		w.Delete(pod("bad", "12"))
		w.Delete(pod("a", "13"))
		synctest.Wait()
		if len(deleted) != 1 || deleted[0].(*corev1.Pod).Name != "a" {
			t.Errorf("the handler received deletes of %v, want only a", deleted)
		}
		if rv := i.GetStore().LastStoreSyncResourceVersion(); rv != "13" {
			t.Errorf("the store has version %q, want 13", rv)
		}
	})
}

func TestResyncs(t *testing.T) {
	minute := time.Minute
	for name, c := range map[string]struct {
		informer time.Duration
		handler  []time.Duration // before the start
		late     []time.Duration
		want     []int // updates of one object in ten minutes, by handler
	}{
		"the period of the informer":  {informer: minute, handler: []time.Duration{minute}, want: []int{10}},
		"an informer without resyncs": {informer: 0, handler: []time.Duration{minute}, want: []int{0}},
		"a handler without resyncs":   {informer: minute, handler: []time.Duration{0, minute}, want: []int{0, 10}},
		"at least a second apart": {informer: minute,
			handler: []time.Duration{time.Millisecond}, want: []int{600}},
		"rounded up to a multiple of the informer's period": {informer: minute,
			handler: []time.Duration{90 * time.Second}, want: []int{5}},
		"a shorter period after the start is raised": {informer: minute, late: []time.Duration{time.Second}, want: []int{10}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake("10", pod("a", "1"))
				i := cache.NewSharedInformer(f, &corev1.Pod{}, c.informer)
				var hs []*record
				add := func(d time.Duration) {
					h := &record{}
					hs = append(hs, h)
					addHandler(t, i, h, d)
				}
				for _, d := range c.handler {
					add(d)
				}
				start(t, i)
				for _, d := range c.late {
					add(d)
				}
				time.Sleep(10*minute + time.Millisecond)
				synctest.Wait()
				for n, h := range hs {
					if got := h.take(); len(got)-1 != c.want[n] {
						t.Errorf("handler %d received %d resyncs, want %d: %.5q", n, len(got)-1, c.want[n], got)
					}
				}
			})
		})
	}
}

func TestUnchangedObjectInARelistReachesOnlyHandlersBeingResynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10", pod("a", "1"))
		i := cache.NewSharedInformer(f, &corev1.Pod{}, time.Minute)
		with, without := &record{}, &record{}
		addHandler(t, i, with, time.Minute)
		addHandler(t, i, without, 0)
		start(t, i)
		f.relist()
		assertStrings(t, "before the first resync check", without.take(), "add a@1 initial=true", "update a@1->1")
		time.Sleep(61 * time.Second)
		with.take()
		f.relist()
		assertStrings(t, "later, with resyncs", with.take(), "update a@1->1")
		assertStrings(t, "later, without", without.take())
	})
}

func TestP7_PanicOfAHandlerFollowsReallyCrashAndAffectsNoOther(t *testing.T) {
	crash := utilruntime.ReallyCrash
	utilruntime.ReallyCrash = false
	defer func() { utilruntime.ReallyCrash = crash }()
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10", pod("a", "1"), pod("b", "2"))
		var problems []string
		i := cache.With(cache.Options{OnProblem: func(p informer.Problem) {
			problems = append(problems,
				p.Doing)
		}}).NewSharedInformer(f, &corev1.Pod{}, 0)
		h, bad := &record{}, &record{}
		addHandler(t, i, h)
		var logged []string
		log := funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{LogCaller: funcr.All})
		if _, err := i.AddEventHandlerWithOptions(cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { bad.OnAdd(obj, true); panic("on purpose") },
		}, cache.HandlerOptions{Logger: &log}); err != nil {
			t.Fatal(err)
		}
		start(t, i)
		if n := len(h.take()); n != 2 {
			t.Errorf("the other handler received %d events, want 2", n)
		}
		assertStrings(t, "received before the pause", bad.take(), "add a@1 initial=true")
		time.Sleep(1001 * time.Millisecond)
		synctest.Wait()
		assertStrings(t, "received after the pause", bad.take(), "add b@2 initial=true")
		assertStrings(t, "reported", problems, "handle", "handle")
		if len(logged) != 2 || !strings.Contains(logged[0], "on purpose") ||
			!strings.Contains(logged[0], `"caller"={"file"="shared_informer_test.go"`) {
			t.Errorf("the log does not name the place of each panic: %.300q", logged)
		}
	})
}

func TestBoundedBacklogIsCoalescedAndInHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10", pod("a", "1"))
		i := cache.With(cache.Options{MaxBacklog: 10}).NewSharedInformer(f, &corev1.Pod{}, 0)
		plain := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
		engine, ok := cache.Engine(i)
		if !ok {
			t.Fatal("Engine does not accept an informer with options")
		}
		hold := make(chan struct{})
		h := &record{}
		addHandler(t, i, cache.ResourceEventHandlerFuncs{UpdateFunc: func(old, now any) { <-hold; h.OnUpdate(old, now) }})
		start(t, i)
		f.current().Modify(pod("a", "99")) // the handler is busy with this one
		synctest.Wait()
		for n := range 90 {
			f.current().Modify(pod("a", fmt.Sprint(100+n)))
		}
		synctest.Wait()
		if b := engine.Health().Handlers[0].Backlog; b > 20 {
			t.Errorf("the backlog has %d events, want at most 20", b)
		}
		close(hold)
		synctest.Wait()
		got := h.take()
		if last := got[len(got)-1]; len(got) > 20 || !strings.HasSuffix(last, "->189") {
			t.Errorf("received %d updates, the last %q", len(got), last)
		}
		if _, ok := cache.Engine(plain); !ok {
			t.Error("Engine does not accept a plain informer")
		}
	})
}

func TestInformerLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10", pod("a", "1"))
		i := cache.NewSharedIndexInformer(f, &corev1.Pod{}, 0, nil)
		reg := addHandler(t, i, &record{})
		if i.HasSynced() || i.IsStopped() || reg.HasSynced() || i.LastSyncResourceVersion() != "" {
			t.Error("the informer is not in its initial state before the start")
		}
		stop := start(t, i)
		i.RunWithContext(t.Context()) // a second run only warns, and returns
		if !i.HasSynced() || !i.GetController().HasSynced() || !cache.IsDone(i.HasSyncedChecker()) || !reg.HasSynced() {
			t.Error("the informer has not synced")
		}
		for doing, err := range map[string]error{
			"transform":  i.SetTransform(nil),
			"nil handle": func() error { _, err := i.AddEventHandler(nil); return err }(),
			"foreign":    i.RemoveEventHandler(foreign{}),
		} {
			if err == nil {
				t.Errorf("%s: no error", doing)
			}
		}
		other := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
		if err := other.RemoveEventHandler(reg); err != nil {
			t.Errorf("removing another informer's handler: %v", err)
		}
		f.current().Modify(pod("a", "11"))
		synctest.Wait()
		if err := cache.ShutDownEventHandler(i, reg); err != nil {
			t.Error(err)
		}
		if err := i.RemoveEventHandler(reg); err != nil {
			t.Errorf("removing twice: %v", err)
		}
		stop()
		if !i.IsStopped() {
			t.Error("IsStopped is false after the stop")
		}
		if obj, exists, _ := i.GetStore().GetByKey("web/a"); !exists || obj.(*corev1.Pod).ResourceVersion != "11" {
			t.Error("the stored object cannot be read after the stop")
		}
		if _, err := i.AddEventHandler(&record{}); err == nil ||
			!strings.HasSuffix(err.Error(), "because it has stopped already") {
			t.Errorf("adding a handler after the stop: %v", err)
		}
		if err := i.AddIndexers(cache.Indexers{"x": byName}); err == nil {
			t.Error("an index was added after the stop")
		}
		if err := i.GetIndexer().Add(pod("b", "1")); err != nil {
			t.Errorf("writing to the store after the stop: %v", err)
		}
	})
}

type foreign struct {
	cache.ResourceEventHandlerRegistration
}

func TestInformerWithoutAListerWatcherReportsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported error
		i := cache.With(cache.Options{OnProblem: func(p informer.Problem) { reported = p.Err }}).
			NewSharedInformer(nil, &corev1.Pod{}, 0)
		start(t, i)
		if reported == nil || !strings.Contains(reported.Error(), "there is no ListerWatcher") {
			t.Errorf("reported %v", reported)
		}
	})
}

func TestWriteToTheStoreSurvivesAStopBeforeTheSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10")
		i := cache.NewSharedIndexInformer(streaming{f}, &corev1.Pod{}, 0, nil)
		stop := start(t, i) // the initial state never ends
		f.current().Add(pod("a", "1"))
		synctest.Wait()
		if err := i.GetIndexer().Add(pod("b", "1")); err != nil {
			t.Error(err)
		}
		stop()
		if keys := i.GetStore().ListKeys(); len(keys) != 1 || keys[0] != "web/b" {
			t.Errorf("stored %v", keys)
		}
	})
}

func TestWriteToTheStoreDoesNotWaitForARelist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10", pod("changed", "1"), pod("same", "2"), pod("gone", "3"))
		i := cache.NewSharedIndexInformer(f, &corev1.Pod{}, 0, nil)
		h := &record{}
		addHandler(t, i, h)
		start(t, i)
		h.take()
		// The next list has two pages, the second of which takes long.
		f.setList(func(o metav1.ListOptions) (runtime.Object, error) {
			if o.Continue == "" {
				return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "20", Continue: "more"},
					Items: []corev1.Pod{*pod("changed", "11"), *pod("same", "2")}}, nil
			}
			time.Sleep(4 * time.Minute)
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "20"},
				Items: []corev1.Pod{*pod("last", "12")}}, nil
		})
		f.relist()
		time.Sleep(time.Minute)
		before := time.Now()
		store := i.GetIndexer()
		for _, err := range []error{store.Update(pod("changed", "by hand")), store.Delete(pod("same", "by hand")),
			store.Add(pod("last", "by hand")), store.Add(pod("extra", "by hand"))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(before); waited > 0 {
			t.Errorf("the writes took %v", waited)
		}
		if n := len(store.List()); n != 4 {
			t.Errorf("%d objects can be read, want changed, gone, last and extra", n)
		}
		if err := store.Replace([]any{pod("extra", "again"), pod("changed", "again")}, "15"); err != nil {
			t.Fatal(err)
		}
		if n := len(store.List()); n != 2 {
			t.Errorf("%d objects can be read after the replace, want extra and changed", n)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		assertStrings(t, "received after the relist", h.take(), "missed delete web/extra@again", "update changed@again->11",
			"add same@2 initial=false",
			"add last@12 initial=false")
		if n := len(store.List()); n != 3 {
			t.Errorf("%d objects are stored, want the 3 of the list", n)
		}
	})
}
