package fleet_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informertest"
)

// keysAt returns the sorted keys of a resource at a moment, and the gap.
func keysAt(t *testing.T, r *fleet.Resource, at time.Time, f fleet.PastFilter) (string, *fleet.Gap) {
	t.Helper()
	if err := r.AwaitPast(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	m, err := r.At(at, f, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	entries, _ := m.Snapshot.Page("", 0)
	for _, e := range entries {
		if len(fleet.Bytes(e, nil)) != e.Size {
			t.Errorf("%s has %d bytes, not %d", e.Key, len(fleet.Bytes(e, nil)), e.Size)
		}
		out = append(out, string(e.Key))
	}
	return strings.Join(out, " "), m.Gap
}

// refused checks that a moment is not known, for a reason.
func refused(t *testing.T, r *fleet.Resource, at time.Time, why fleet.PastReason) *fleet.PastError {
	t.Helper()
	var past *fleet.PastError
	if _, err := r.At(at, fleet.PastFilter{}, nil); !errors.As(err, &past) || past.Reason != why {
		t.Errorf("at %v: %v, want reason %d", at, err, why)
		return &fleet.PastError{}
	}
	return past
}

func TestTheStateOfAMomentIsReadAndGapsAreKnown(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer(informertest.BookmarkEvery(time.Minute))
		cfg, stop := informertest.Pipe(s)
		defer stop()
		create(t, s, namespace("kube-system"), namespace("web"), labeled("a", "x"), pod("web", "b"))
		var then, stopped, started time.Time
		early := time.Now()
		time.Sleep(time.Minute)
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", cfg)
			w.untilState(c, fleet.Ready)
			r := w.resource(c, podsGVR)
			if e := refused(t, r, time.Now(), fleet.BeforeHistory); !e.Begin.IsZero() {
				t.Errorf("nothing is on disk: %v", e)
			}
			time.Sleep(time.Second)
			if got, gap := keysAt(t, r, time.Now(), fleet.PastFilter{}); got != "web/a web/b" || gap != nil {
				t.Errorf("at once: %s, gap %v", got, gap)
			}
			time.Sleep(time.Minute)
			then = time.Now()
			time.Sleep(time.Millisecond)
			create(t, s, labeled("c", "x"))
			if _, err := s.Delete(pod("web", "b")); err != nil {
				t.Fatal(err)
			}
			w.until("the changes are mirrored", func() bool { return keysOf(r) == "web/a web/c" })
			time.Sleep(time.Millisecond) // changes of one instant are some nanoseconds apart on disk
			now := time.Now()
			for _, m := range []struct {
				at     time.Time
				filter fleet.PastFilter
				want   string
			}{{then, fleet.PastFilter{}, "web/a web/b"}, {now, fleet.PastFilter{}, "web/a web/c"},
				{then, fleet.PastFilter{Label: "app=x"}, "web/a"}, {now, fleet.PastFilter{Label: "app=x"}, "web/a web/c"},
				{then, fleet.PastFilter{Key: "web/c"}, ""}, {then, fleet.PastFilter{Key: "web/b"}, "web/b"},
				{now, fleet.PastFilter{Namespace: "none"}, ""}} {
				if got, gap := keysAt(t, r, m.at, m.filter); got != m.want || gap != nil {
					t.Errorf("at %v %+v: %s, gap %v; want %s", m.at, m.filter, got, gap, m.want)
				}
			}
			if e := refused(t, r, early, fleet.BeforeHistory); e.Begin.Before(early) || e.Begin.After(then) ||
				!strings.Contains(e.Error(), "begins at ") {
				t.Errorf("begin: %v", e)
			}
			refused(t, r, time.Now().Add(time.Second), fleet.InFuture)
			events, ok := c.Resource(podsGVR.GroupVersion().WithResource("events"))
			if !ok {
				t.Fatal("there are no events")
			}
			refused(t, events, then, fleet.NoHistory)
			time.Sleep(time.Second)
			stopped = time.Now()
		})
		create(t, s, pod("web", "d"))
		time.Sleep(time.Hour)
		started = time.Now()
		refuse := s.Inject(informertest.Fault{Refuse: true})
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", cfg)
			w.until("the disk is read", func() bool { r, ok := c.Resource(podsGVR); return ok && r.Synced() })
			r, _ := c.Resource(podsGVR)
			w.until("the cluster is unreachable", func() bool { return c.Health().State == fleet.Unreachable })
			if got, gap := keysAt(t, r, time.Now(), fleet.PastFilter{}); got != "web/a web/c" || gap == nil ||
				!gap.To.IsZero() || gap.From.After(stopped) {
				t.Errorf("unreachable: %s, gap %v", got, gap)
			}
			if got, gap := keysAt(t, r, then, fleet.PastFilter{}); got != "web/a web/b" || gap != nil {
				t.Errorf("before: %s, gap %v", got, gap)
			}
			refuse()
			w.until("the cluster is read", func() bool { return keysOf(r) == "web/a web/c web/d" })
			time.Sleep(time.Second)
			if got, gap := keysAt(t, r, started.Add(-time.Minute), fleet.PastFilter{}); got != "web/a web/c" || gap == nil ||
				gap.From.After(stopped) || gap.To.Before(started) {
				t.Errorf("in the gap: %s, gap %v", got, gap)
			}
			if got, gap := keysAt(t, r, time.Now(), fleet.PastFilter{}); got != "web/a web/c web/d" || gap != nil {
				t.Errorf("after: %s, gap %v", got, gap)
			}
			until := time.Now()
			if err := r.AwaitPast(t.Context(), until); err != nil {
				t.Fatal(err)
			}
			h, err := r.History(fleet.PastFilter{Key: "web/b"}, time.Time{}, until)
			if err != nil || len(h.Gaps) != 1 || h.Begin.After(then) {
				t.Fatalf("history: %+v, %v", h, err)
			}
			var types []bool
			for c, err := range h.Changes {
				if err != nil {
					t.Fatal(err)
				}
				types = append(types, c.Deleted)
			}
			if len(types) != 2 || types[0] || !types[1] {
				t.Errorf("deleted: %v", types)
			}
		})
		// With other rules for redaction, what is on disk may have what is hidden now.
		refuse = s.Inject(informertest.Fault{Refuse: true})
		defer refuse()
		withDisk(t, dir, fleet.Options{Redact: []string{"pods:/spec/nodeName"}}, func(w *world) {
			c := w.join("eu", cfg)
			w.until("the discovery is restored", func() bool { _, ok := c.Resource(podsGVR); return ok })
			r, _ := c.Resource(podsGVR)
			refused(t, r, then, fleet.BeforeHistory)
		})
	})
}

func TestWithoutADiskThereIsNoPast(t *testing.T) {
	inWorld(t, fleet.Options{}, func(w *world) {
		s, c := w.joined("eu")
		create(w.T, s, pod("web", "a"))
		w.untilState(c, fleet.Ready)
		if e := refused(w.T, w.resource(c, podsGVR), time.Now(), fleet.NoDisk); !strings.Contains(e.Error(), "--data") {
			w.Errorf("%v", e)
		}
	})
}
