package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

// TestAfterMissesNoChange follows a store by sequence numbers while its versions repeat, go back and are listed anew.
func TestAfterMissesNoChange(t *testing.T) {
	for seed := range uint64(200) {
		followStore(t, seed)
	}
}

func followStore(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	w := mustNew(t, Options[thing]{LogBytes: 100 + rnd.IntN(4000)})
	version, have, at := 1, map[object.Key]string{}, uint64(0)
	next := func() int { // mostly later, sometimes the same or earlier
		version = max(1, version+rnd.IntN(6)-1)
		return version
	}
	key := func() string { return fmt.Sprint("k", rnd.IntN(8)) }
	item := func() object.Item[thing] {
		return object.Item[thing]{Key: object.Key(key()), Version: object.Version(fmt.Sprint(next())),
			Value: thing{Color: fmt.Sprint(rnd.Uint32())}}
	}
	followed, gone := 0, 0
	for range 60 {
		switch n := rnd.IntN(20); {
		case n == 0:
			w.Reset()
		case n < 3:
			w.BeginReplace()
			for range rnd.IntN(6) {
				w.Stage(item())
			}
			w.CommitReplace(object.Version(fmt.Sprint(next())), nil)
		default:
			w.Begin()
			for range rnd.IntN(4) {
				if rnd.IntN(4) == 0 {
					w.Delete(object.Key(key()), object.Version(fmt.Sprint(next())))
				} else {
					w.Put(item())
				}
			}
			switch rnd.IntN(12) {
			case 0:
				w.EndHistory()
			case 1:
				w.SetVersion(object.Version(fmt.Sprint(next())))
			}
			w.Commit()
		}
		if rnd.IntN(3) == 0 {
			continue
		}
		snap := w.Reader().Snapshot()
		commits, err := w.Reader().After(at)
		switch {
		case err == nil:
			followed++
			for c := range commits.Changes {
				if (c.Old == nil) != (have[c.Key] == "") || c.Old != nil && c.Old.Object().Color != have[c.Key] {
					t.Fatalf("seed %d: the old state of %s is not the one before", seed, c.Key)
				}
				delete(have, c.Key)
				if c.New != nil {
					have[c.Key] = c.New.Object().Color
				}
			}
			if commits.Seq != snap.Seq() || commits.Version != snap.Version() {
				t.Fatalf("seed %d: reached %d %q, the snapshot has %d %q", seed, commits.Seq, commits.Version, snap.Seq(),
					snap.Version())
			}
		case errors.Is(err, ErrGone):
			gone++
			clear(have)
			for e := range snap.Entries() {
				have[e.Key] = e.Object().Color
			}
		default:
			t.Fatal(err)
		}
		at = snap.Seq()
		want := map[object.Key]string{}
		for e := range snap.Entries() {
			want[e.Key] = e.Object().Color
		}
		if !maps.Equal(have, want) {
			t.Fatalf("seed %d: the follower has %v, the store %v", seed, have, want)
		}
	}
	if followed == 0 || gone == 0 {
		t.Fatalf("seed %d: %d commits followed, %d times gone; both must occur", seed, followed, gone)
	}
	if _, err := w.Reader().After(w.Reader().Snapshot().Seq() + 1); !errors.Is(err, ErrGone) {
		t.Fatalf("changes after a commit that was not reached: %v", err)
	}
}

func TestAChangeHasIndexValuesThatChanged(t *testing.T) {
	w := mustNew(t, Options[thing]{LogBytes: 1 << 20, Indexes: map[string]IndexFunc[thing]{
		"color": func(x thing) ([]string, error) { return []string{x.Color}, nil }, "namespace": ByNamespace[thing]()}})
	commit(w, func() { put(w, 1, "first", "red") })
	at := w.Reader().Snapshot().Seq()
	commit(w, func() { put(w, 2, "a", "red") })
	commit(w, func() { put(w, 3, "a", "red") })
	commit(w, func() { put(w, 4, "a", "blue"); put(w, 5, "a", "blue") })
	commit(w, func() { w.Delete("a", "6") })
	commits, err := w.Reader().After(at)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for c := range commits.Changes {
		got = append(got, fmt.Sprint(c.Indexed))
	}
	if want := []string{"[{color [red]}]", "[]", "[{color [blue]}]", "[]", "[]"}; !slices.Equal(got, want) {
		t.Errorf("Indexed is %v, want %v", got, want)
	}
}
