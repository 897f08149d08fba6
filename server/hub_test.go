package server

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/mirador-k8s/mirador/fleet"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

func entry(key object.Key, version int) *fleet.Entry {
	ns, name := key.Split()
	raw := fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"resourceVersion":"%d","labels":{"v":"%d"}}}`, name, ns, version, version)
	return store.NewEntry(object.Item[*fleet.Object]{Key: key, Version: object.Version(fmt.Sprint(version)), UID: string(key), Value: &fleet.Object{Bytes: []byte(raw)}})
}

func event(key object.Key, version int) *fleet.Event {
	return &fleet.Event{Type: object.Update, Key: key, Version: object.Version(fmt.Sprint(version)), Old: entry(key, version-1), New: entry(key, version)}
}

func taken(t *testing.T, f *feed) (versions []string) {
	t.Helper()
	batch, err := f.take(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range batch {
		versions = append(versions, string(c.key)+"@"+c.version)
	}
	return versions
}

func TestAWatchIsToldOfItsNamespaceAlone(t *testing.T) {
	h := &hub{feeds: map[string]map[*feed]struct{}{}}
	all, web, db := h.join(""), h.join("web"), h.join("db")
	h.handle("eu", event("web/a", 2))
	h.handle("eu", event("db/b", 3))
	h.handle("eu", event("node", 4))
	if got, want := taken(t, all), []string{"web/a@2", "db/b@3", "node@4"}; !slices.Equal(got, want) {
		t.Errorf("all: %q", got)
	}
	if got, want := taken(t, web), []string{"web/a@2"}; !slices.Equal(got, want) {
		t.Errorf("web: %q", got)
	}
	if h.leave(db) {
		t.Error("the last has left, and two are there")
	}
	h.handle("eu", event("db/b", 5))
	if got := taken(t, db); !slices.Equal(got, []string{"db/b@3"}) {
		t.Errorf("after it left: %q", got)
	}
	if h.leave(all) || !h.leave(web) {
		t.Error("the last one was not noticed")
	}
}

func TestWhoReadsTooSlowlyIsEndedAndNothingIsKept(t *testing.T) {
	h := &hub{feeds: map[string]map[*feed]struct{}{}}
	slow, quick := h.join(""), h.join("")
	for i := range maxWaiting + 1 {
		h.handle("eu", event("web/a", i+2))
		if i%99 == 0 {
			taken(t, quick)
		}
	}
	if _, err := slow.take(nil); !errors.Is(err, errTooSlow) {
		t.Errorf("%v", err)
	}
	if len(slow.waiting) != 0 || len(taken(t, quick)) == 0 {
		t.Error("something is kept for the slow one, or the quick one suffers")
	}
}

func TestAHistoryThatWasSetBackEndsWatches(t *testing.T) {
	h := &hub{feeds: map[string]map[*feed]struct{}{}}
	f := h.join("")
	h.handle("eu", event("web/a", 9))
	e := event("web/a", 3)
	e.Epoch = 1
	h.handle("eu", e)
	if got := taken(t, f); !slices.Equal(got, []string{"web/a@9"}) {
		t.Errorf("%q", got)
	}
	if _, err := f.take(nil); !errors.Is(err, errSetBack) {
		t.Errorf("%v", err)
	}
}

func TestTheFleetHasOneOrderAndRemembersIt(t *testing.T) {
	var seq atomic.Uint64
	seq.Store(1000)
	h := newFleetHub(&seq)
	if got := h.version("eu", "web/a"); got != "1000" {
		t.Errorf("what never changed is shown at %s", got)
	}
	h.handle("eu", event("web/a", 7))
	h.handle("us", event("web/a", 3))
	if eu, us := h.version("eu", "web/a"), h.version("us", "web/a"); eu != "1001" || us != "1002" {
		t.Errorf("eu %s, us %s", eu, us)
	}
	f, missed, err := h.join(scopeOf{}, "1001")
	if err != nil || len(missed) != 1 || missed[0].cluster != "us" || missed[0].version != "1002" {
		t.Fatalf("%v, %v", missed, err)
	}
	only, missed, err := h.join(scopeOf{"eu", "web"}, "1000")
	if err != nil || len(missed) != 1 || missed[0].cluster != "eu" {
		t.Fatalf("%v, %v", missed, err)
	}
	h.handle("eu", event("db/b", 9))
	h.handle("us", event("web/a", 4))
	h.handle("eu", event("web/a", 8))
	if got, want := taken(t, f), []string{"db/b@1003", "web/a@1004", "web/a@1005"}; !slices.Equal(got, want) {
		t.Errorf("all: %q", got)
	}
	if got, want := taken(t, only), []string{"web/a@1005"}; !slices.Equal(got, want) {
		t.Errorf("one namespace: %q", got)
	}
	if v, ok := h.reached(f); !ok || v != "1005" {
		t.Errorf("reached %s, %v", v, ok)
	}
	if _, _, err := h.join(scopeOf{}, "999"); !errors.Is(err, store.ErrGone) {
		t.Errorf("a version of a daemon before: %v", err)
	}
	for i := range ringLen {
		h.handle("eu", event("web/a", 100+i))
	}
	if _, _, err := h.join(scopeOf{}, "1002"); !errors.Is(err, store.ErrGone) {
		t.Errorf("a version that was forgotten: %v", err)
	}
	from := h.dropped
	if _, missed, err := h.join(scopeOf{}, object.Version(fmt.Sprint(from))); err != nil || len(missed) != len(h.ring) || versionNumber(missed[0].order) != from+1 {
		t.Errorf("from the oldest that is known: %d of %d, %v", len(missed), len(h.ring), err)
	}
}

func TestAnObjectThatLeavesASelectionIsDeleted(t *testing.T) {
	p := &params{labels: "v in (2,3)"}
	f, err := newFilter(p)
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[int]string{2: "ADDED", 3: "MODIFIED", 4: "DELETED", 5: ""} {
		e := event("web/a", version)
		got, err := f.sees(&change{cluster: "eu", key: e.Key, old: e.Old, now: e.New})
		if err != nil || string(got) != want {
			t.Errorf("version %d: %q, %v", version, got, err)
		}
	}
	c := &change{cluster: "eu", key: "web/a", old: entry("web/a", 3), now: entry("web/a", 4), version: "4"}
	line, err := c.frame(&renderer{}, "DELETED", false)
	if want := `{"type":"DELETED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"web","resourceVersion":"4","labels":{"v":"3"}}}}` + "\n"; err != nil || string(line) != want {
		t.Errorf("%s, %v", line, err)
	}
}
