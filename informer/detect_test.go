package informer_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/store"
)

// labelled is a pod that has a label in common with all others.
func labelled(t *testing.T, name, version string) object.Item[*corev1.Pod] {
	return podItem(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name, ResourceVersion: version,
		Labels: map[string]string{"app": "shop"}}})
}

// guarded subscribes a handler to an informer of three pods, and returns what the detector finds. In the shared
// layout a and b share one map: a value that occurred once before, here in first, is shared from then on.
func guarded(t *testing.T, layout store.Layout, name string,
	h informer.Funcs[*corev1.Pod]) (r *runningOf[*corev1.Pod], found func() []store.Written) {
	first, a, b := labelled(t, "first", "1"), labelled(t, "a", "2"), labelled(t, "b", "3")
	var mu sync.Mutex
	var all []store.Written
	r = makeOf(t, newFeedOf(stateOf[*corev1.Pod]{3, []object.Item[*corev1.Pod]{first, a, b}},
		stateOf[*corev1.Pod]{5, []object.Item[*corev1.Pod]{first, b}}), // if it lists again
		func(o *informer.Options[*corev1.Pod]) { o.Layout = layout }, func(o *informer.Options[*corev1.Pod]) {
			o.DetectWrites = func(w store.Written) {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, w)
			}
		})
	subscribe(t, r, h, &informer.HandlerOptions{Name: name})
	r.run(t)
	return r, func() []store.Written {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// goOn updates and deletes a. The deletion is received, or missed and inferred from a list.
func goOn(t *testing.T, r *runningOf[*corev1.Pod], seen bool) {
	r.say(source.Change[*corev1.Pod]{Type: object.Updated, Item: labelled(t, "a", "4")})
	synctest.Wait()
	if seen {
		r.say(source.Change[*corev1.Pod]{Type: object.Deleted, Item: labelled(t, "a", "5")})
	} else {
		r.expire()
	}
	synctest.Wait()
}

func scribble(p *corev1.Pod) { p.Labels["app"] = "other" }

func inEachLayout(t *testing.T, test func(t *testing.T, layout store.Layout)) {
	for _, layout := range []store.Layout{store.Live, store.Shared, store.Packed} {
		t.Run(layout.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, layout) })
		})
	}
}

func TestDetectWritesNamesTheHandlerThatWrote(t *testing.T) {
	onlyA := func(p *corev1.Pod, _ bool) {
		if p.Name == "a" {
			scribble(p)
		}
	}
	for what, h := range map[string]struct {
		version object.Version // of the state that is written to
		seen    bool           // the deletion is received
		funcs   informer.Funcs[*corev1.Pod]
	}{
		"added":   {"2", false, informer.Funcs[*corev1.Pod]{OnAdd: onlyA}},
		"before":  {"2", false, informer.Funcs[*corev1.Pod]{OnUpdate: func(old, _ *corev1.Pod) { scribble(old) }}},
		"after":   {"4", false, informer.Funcs[*corev1.Pod]{OnUpdate: func(_, now *corev1.Pod) { scribble(now) }}},
		"gone":    {"4", false, informer.Funcs[*corev1.Pod]{OnDelete: func(p *corev1.Pod, _ bool) { scribble(p) }}},
		"deleted": {"5", true, informer.Funcs[*corev1.Pod]{OnDelete: func(p *corev1.Pod, _ bool) { scribble(p) }}},
		"and panicked": {"2", false,
			informer.Funcs[*corev1.Pod]{OnAdd: func(p *corev1.Pod, _ bool) { onlyA(p, false); panic("on top of it") }}},
	} {
		t.Run(what, func(t *testing.T) {
			inEachLayout(t, func(t *testing.T, layout store.Layout) {
				r, found := guarded(t, layout, "the culprit", h.funcs)
				goOn(t, r, h.seen)
				got := found()
				n := slices.IndexFunc(got, func(w store.Written) bool { return w.Key == "web/a" && w.Version == h.version })
				if n < 0 {
					t.Fatalf("found %v", got)
				}
				if w := got[n]; w.Path != `ObjectMeta.Labels["app"]` || !slices.Equal(w.By, []string{"the culprit"}) {
					t.Errorf("found %+v", w)
				}
			})
		})
	}
}

func TestDetectWritesNamesTheCallSiteOfAReaderThatWrote(t *testing.T) {
	inEachLayout(t, func(t *testing.T, layout store.Layout) {
		r, found := guarded(t, layout, "who takes nothing", informer.Funcs[*corev1.Pod]{})
		p, _ := r.Snapshot().Get("web/a")
		scribble(p)
		for e := range r.Snapshot().Entries() {
			e.Verify()
		}
		got := found()
		named := func(w store.Written) bool {
			return w.Key == "web/a" && len(w.By) == 1 &&
				strings.Contains(w.By[0], "TestDetectWritesNamesTheCallSiteOfAReaderThatWrote")
		}
		if !slices.ContainsFunc(got, named) {
			t.Fatalf("found %v", got)
		}
		// A write to a shared part changes all its objects, and all of them are reported.
		if n := len(got); n != 1 && layout != store.Shared || n != 2 && layout == store.Shared {
			t.Errorf("%d objects were changed: %v", n, got)
		}
	})
}

func TestDetectWritesReportsNoReaders(t *testing.T) {
	inEachLayout(t, func(t *testing.T, layout store.Layout) {
		read := 0
		count := func(p *corev1.Pod, _ bool) { read += len(p.Labels) }
		r, found := guarded(t, layout, "a reader", informer.Funcs[*corev1.Pod]{OnAdd: count,
			OnUpdate: func(old, now *corev1.Pod) { count(old, false); scribble(now.DeepCopy()) }, OnDelete: count})
		goOn(t, r, true)
		if got := found(); len(got) > 0 || read != 5 {
			t.Errorf("%d labels were read, and found was %v", read, got)
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		if got := found(); len(got) > 0 {
			t.Errorf("at the stop: %v", got)
		}
	})
}
