package server

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// storedEntry returns an entry for an item.
func storedEntry(it object.Item[*fleet.Object]) *fleet.Entry {
	w, err := store.New(store.Options[*fleet.Object]{})
	if err != nil {
		panic(err) // the options are valid
	}
	return w.Last(it)
}

func entry(key object.Key, version int) *fleet.Entry {
	ns, name := key.Split()
	raw := fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"resourceVersion":"%d",`+
		`"labels":{"v":"%d"}}}`, name, ns, version, version)
	return storedEntry(object.Item[*fleet.Object]{Key: key, Version: object.Version(fmt.Sprint(version)),
		UID: string(key), Value: &fleet.Object{Bytes: []byte(raw)}})
}

func event(key object.Key, version int) *fleet.Event {
	return &fleet.Event{Type: object.Updated, Key: key, Version: object.Version(fmt.Sprint(version)),
		Old: entry(key, version-1), New: entry(key, version)}
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

func TestWatchReceivesOnlyItsNamespace(t *testing.T) {
	h := &clusterWatchHub{feeds: feeds{}}
	all, web, db := h.join(watchScope{}), h.join(watchScope{"eu", "web"}), h.join(watchScope{"eu", "db"})
	h.handle("eu", event("web/a", 2))
	h.handle("eu", event("db/b", 3))
	h.handle("eu", event("node", 4))
	if got, want := taken(t, all), []string{"web/a@2", "db/b@3", "node@4"}; !slices.Equal(got, want) {
		t.Errorf("all: %q", got)
	}
	if got, want := taken(t, web), []string{"web/a@2"}; !slices.Equal(got, want) {
		t.Errorf("web: %q", got)
	}
	if h.drop(db) {
		t.Error("drop reports the last watch although there are two")
	}
	h.handle("eu", event("db/b", 5))
	if got := taken(t, db); !slices.Equal(got, []string{"db/b@3"}) {
		t.Errorf("after it left: %q", got)
	}
	if h.drop(all) || !h.drop(web) {
		t.Error("drop does not report the last watch")
	}
}

func TestSlowWatchEndsAndItsQueueIsDropped(t *testing.T) {
	h := &clusterWatchHub{feeds: feeds{}}
	slow, quick := h.join(watchScope{}), h.join(watchScope{})
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
		t.Error("the queue of the slow watch was kept, or the quick watch got nothing")
	}
}

func TestNewEpochEndsWatches(t *testing.T) {
	h := &clusterWatchHub{feeds: feeds{}}
	f := h.join(watchScope{})
	h.handle("eu", event("web/a", 9))
	e := event("web/a", 3)
	e.Epoch = 1
	h.handle("eu", e)
	if got := taken(t, f); !slices.Equal(got, []string{"web/a@9"}) {
		t.Errorf("%q", got)
	}
	if _, err := f.take(nil); !errors.Is(err, errHistoryReset) {
		t.Errorf("%v", err)
	}
}

func TestFeedSignalsItsEndAfterTheLastWaitingChange(t *testing.T) {
	f := feeds{}.add(watchScope{})
	f.push(&change{cluster: "eu", key: "web/a", order: "9"})
	f.end(errHistoryReset)
	<-f.wake
	if got := taken(t, f); len(got) != 1 {
		t.Fatalf("took %q, want the change that was waiting", got)
	}
	select {
	case <-f.wake:
	default:
		t.Fatal("nothing wakes the watch to read why its feed ended")
	}
	if _, err := f.take(nil); !errors.Is(err, errHistoryReset) {
		t.Errorf("take returned %v, want %v", err, errHistoryReset)
	}
}

func TestNothingWaitsForRoomInAFeedThatWasTooSlow(t *testing.T) {
	f := feeds{}.add(watchScope{})
	for range maxWaiting {
		f.push(&change{})
	}
	room, full := f.full()
	if !full {
		t.Fatal("a feed with as many changes as may wait is not full")
	}
	f.push(&change{})
	select {
	case <-room:
	default:
		t.Error("a handler still waits for room in a feed that has ended")
	}
}

func TestFleetHubHasOneOrderAndKeepsRecentChanges(t *testing.T) {
	var seq atomic.Uint64
	seq.Store(1000)
	h, res := newFleetWatchHub(&seq), new(fleet.Resource)
	h.members[res] = &member{cluster: "eu"}
	const now = math.MaxUint64
	if got := h.version("eu", "web/a", now); got != "1001" {
		t.Errorf("an object that never changed has version %s", got)
	}
	h.handle("eu", res, event("web/a", 7))
	h.handle("us", res, event("web/a", 3))
	if eu, us := h.version("eu", "web/a", now), h.version("us", "web/a", now); eu != "1002" || us != "1003" {
		t.Errorf("eu %s, us %s", eu, us)
	}
	f, missed, err := h.join(watchScope{}, "1002")
	if err != nil || len(missed) != 1 || missed[0].cluster != "us" || missed[0].version != "1003" {
		t.Fatalf("%v, %v", missed, err)
	}
	only, missed, err := h.join(watchScope{"eu", "web"}, "1001")
	if err != nil || len(missed) != 1 || missed[0].cluster != "eu" {
		t.Fatalf("%v, %v", missed, err)
	}
	h.handle("eu", res, event("db/b", 9))
	h.handle("us", res, event("web/a", 4))
	h.handle("eu", res, event("web/a", 8))
	if got, want := taken(t, f), []string{"db/b@1004", "web/a@1005", "web/a@1006"}; !slices.Equal(got, want) {
		t.Errorf("all: %q", got)
	}
	if got, want := taken(t, only), []string{"web/a@1006"}; !slices.Equal(got, want) {
		t.Errorf("one namespace: %q", got)
	}
	if v, ok := h.reached(f, ""); !ok || v != "1006" {
		t.Errorf("reached %s, %v", v, ok)
	}
	if _, _, err := h.join(watchScope{}, "1000"); !errors.Is(err, store.ErrGone) {
		t.Errorf("a version of an earlier daemon: %v", err)
	}
	for i := range ringLen {
		h.handle("eu", res, event("web/a", 100+i))
	}
	if _, _, err := h.join(watchScope{}, "1003"); !errors.Is(err, store.ErrGone) {
		t.Errorf("a version that was dropped from the ring: %v", err)
	}
	from := h.dropped
	if _, missed, err := h.join(watchScope{}, object.Version(fmt.Sprint(from))); err != nil ||
		len(missed) != len(h.ring) || missed[0].version != fmt.Sprint(from+1) {
		t.Errorf("from the oldest version in the ring: %d of %d changes, %v", len(missed), len(h.ring), err)
	}
}

func TestObjectsAreShownWithNoVersionAfterThatOfTheList(t *testing.T) {
	var seq atomic.Uint64
	h, res := newFleetWatchHub(&seq), new(fleet.Resource)
	h.members[res] = &member{cluster: "eu"}
	h.handle("eu", res, event("web/a", 7))
	moment := fleetMoment{hub: h, version: h.now()}
	h.handle("eu", res, event("web/a", 8)) // a list that is read now may or may not have it
	if got, want := moment.of("eu", "web/a"), fmt.Sprint(moment.version); got != want {
		t.Errorf("the object has version %s and the list %s, so a watch would miss the next change", got, want)
	}
	_, missed, err := h.join(watchScope{}, object.Version(fmt.Sprint(moment.version)))
	if err != nil || len(missed) != 1 || missed[0].version == moment.of("eu", "web/a") {
		t.Errorf("%v, %v", missed, err)
	}
}

func TestWatchScopeConcernsItsObjects(t *testing.T) {
	for _, c := range []struct {
		of      watchScope
		cluster string
		key     object.Key
		want    bool
	}{
		{watchScope{}, "eu", "web/a", true}, {watchScope{cluster: "eu"}, "eu", "web/a", true},
		{watchScope{cluster: "eu"}, "eu", "node", true}, {watchScope{cluster: "eu"}, "us", "web/a", false},
		{watchScope{"eu", "web"}, "eu", "web/a", true}, {watchScope{"eu", "web"}, "eu", "db/a", false},
		{watchScope{"eu", "web"}, "us", "web/a", false}, {watchScope{namespace: "web"}, "us", "web/a", true},
		{watchScope{namespace: "web"}, "us", "db/a", false}, {watchScope{namespace: "web"}, "us", "node", false},
	} {
		if got := c.of.concerns(c.cluster, c.key); got != c.want {
			t.Errorf("%+v and %s of %s: %v", c.of, c.key, c.cluster, got)
		}
	}
}

func TestLeavingClusterEndsWatchesAndKeepsVersionsOfOthers(t *testing.T) {
	var seq atomic.Uint64
	h, eu, us := newFleetWatchHub(&seq), new(fleet.Resource), new(fleet.Resource)
	h.members[eu], h.members[us] = &member{cluster: "eu"}, &member{cluster: "us"}
	h.handle("eu", eu, event("web/a", 7))
	h.handle("us", us, event("web/a", 7))
	f, _, err := h.join(watchScope{}, "")
	if err != nil {
		t.Fatal(err)
	}
	before := fleetMoment{hub: h, version: h.now()}
	changed, quiet := before.of("us", "web/a"), before.of("us", "web/b")
	h.removeMember(eu)
	h.handle("eu", eu, event("web/a", 8)) // an event that was being delivered
	after := fleetMoment{hub: h, version: h.now()}
	if after.version <= before.version || after.of("us", "web/a") != changed || after.of("us", "web/b") != quiet {
		t.Errorf("at %d the objects of the others are shown at %s and %s, and were at %s and %s", after.version,
			after.of("us", "web/a"), after.of("us", "web/b"), changed, quiet)
	}
	if _, err := f.take(nil); !errors.Is(err, errHistoryReset) {
		t.Errorf("the watch ended with %v", err)
	}
	if _, _, err := h.join(watchScope{}, object.Version(fmt.Sprint(before.version))); !errors.Is(err, store.ErrGone) {
		t.Errorf("a watch from an earlier version gets %v", err)
	}
}

// Changes between two hubs of a resource are not known.
func TestNewHubDoesNotContinueFromVersionsOfAnEarlierOne(t *testing.T) {
	var seq atomic.Uint64
	first := newFleetWatchHub(&seq)
	was := object.Version(fmt.Sprint(first.now()))
	if _, _, err := newFleetWatchHub(&seq).join(watchScope{}, was); !errors.Is(err, store.ErrGone) {
		t.Errorf("%v", err)
	}
}

func TestRingAndFeedsAreBoundedInBytes(t *testing.T) {
	var seq atomic.Uint64
	h, res := newFleetWatchHub(&seq), new(fleet.Resource)
	h.members[res] = &member{cluster: "eu"}
	large := func(version int) *fleet.Event {
		e := event("web/a", version)
		e.Old, e.New = entry(e.Key, version-1), entry(e.Key, version)
		e.Old.Size, e.New.Size = 1<<20, 1<<20
		return e
	}
	for i := range 100 {
		h.handle("eu", res, large(i+1))
	}
	if h.bytes > ringBytes || len(h.ring) == 0 || h.bytes != len(h.ring)<<20 {
		t.Errorf("%d bytes of %d changes are kept", h.bytes, len(h.ring))
	}
	f, _, err := h.join(watchScope{}, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		h.handle("eu", res, large(i+200))
	}
	if _, err := f.take(nil); !errors.Is(err, errTooSlow) || f.bytes != 0 {
		t.Errorf("%d bytes wait, and %v", f.bytes, err)
	}
}

// A joining cluster has more objects than may wait for a watch. They are sent no faster than the watch is read.
func TestJoiningClusterEndsNoWatchThatIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seq atomic.Uint64
		h, res := newFleetWatchHub(&seq), new(fleet.Resource)
		h.members[res] = &member{cluster: "eu"}
		read, _, _ := h.join(watchScope{}, "")
		left, _, _ := h.join(watchScope{}, "")
		stuck, _, _ := h.join(watchScope{}, "")
		const objects = 10 * maxWaiting
		var joining sync.WaitGroup
		joining.Go(func() {
			handle := h.handler("eu", res, nil)
			for i := range objects {
				e := event("web/a", i+1)
				e.Type, e.Old, e.Initial = object.Added, nil, true
				handle(e)
			}
		})
		synctest.Wait() // until it waits for the watches
		h.leave(left)   // does not have to be waited for any more
		var reading sync.WaitGroup
		got := 0
		reading.Go(func() {
			for got < objects {
				<-read.wake
				batch, err := read.take(nil)
				if err != nil {
					t.Error(err)
					return
				}
				got += len(batch)
			}
		})
		joining.Wait()
		reading.Wait()
		if _, err := stuck.take(nil); !errors.Is(err, errTooSlow) || got != objects {
			t.Errorf("the watch that is read got %d of %d changes; the other ended with %v", got, objects, err)
		}
	})
}

// Coalesced changes can be out of the order of versions: a client that continues from the newest would miss some.
func TestChangesOutOfOrderEndWatches(t *testing.T) {
	h := &clusterWatchHub{feeds: feeds{}}
	f := h.join(watchScope{})
	h.handle("eu", event("web/a", 900))
	h.handle("eu", event("web/b", 850))
	if got := taken(t, f); !slices.Equal(got, []string{"web/a@900"}) {
		t.Errorf("%q", got)
	}
	if _, err := f.take(nil); !errors.Is(err, errMerged) {
		t.Errorf("%v", err)
	}
}

// The changes that a relist finds are not in the order of versions. A client that was sent one of them, with the
// version of the list, would continue from there and miss the others.
func TestChangesFoundByARelistEndWatches(t *testing.T) {
	deleted, changed := event("web/b", 900), event("web/b", 870)
	deleted.Type, deleted.Old, deleted.New, deleted.Missed = object.Deleted, deleted.New, nil, true
	changed.Version = "900"
	for name, e := range map[string]*fleet.Event{"deleted": deleted, "changed": changed} {
		h := &clusterWatchHub{feeds: feeds{}}
		f := h.join(watchScope{})
		h.handle("eu", event("web/a", 850))
		h.handle("eu", e)
		if got := taken(t, f); !slices.Equal(got, []string{"web/a@850"}) {
			t.Errorf("%s: the watch has sent %q", name, got)
		}
		if _, err := f.take(nil); !errors.Is(err, errRelisted) {
			t.Errorf("%s: the watch ended with %v", name, err)
		}
	}
}

func TestObjectThatNoLongerMatchesIsDeleted(t *testing.T) {
	req := &request{params: params{labels: "v in (2,3)"}}
	f, err := new(Server).newFilter(req, &view{})
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[int]string{2: "ADDED", 3: "MODIFIED", 4: "DELETED", 5: ""} {
		e := event("web/a", version)
		got, err := f.eventType(&change{cluster: "eu", key: e.Key, old: e.Old, now: e.New})
		if err != nil || string(got) != want {
			t.Errorf("version %d: %q, %v", version, got, err)
		}
	}
	c := &change{cluster: "eu", key: "web/a", old: entry("web/a", 3), now: entry("web/a", 4), version: "4"}
	line, err := c.frame(&renderer{}, "DELETED", false)
	if want := `{"type":"DELETED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"web",` +
		`"resourceVersion":"4","labels":{"v":"3"}}}}` + "\n"; err != nil || string(line) != want {
		t.Errorf("%s, %v", line, err)
	}
}
