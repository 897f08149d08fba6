package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// since returns the changes as text, or "gone".
func since(t *testing.T, w *Writer[thing], v object.Version) string {
	t.Helper()
	changes, err := w.Reader().Since(v)
	if errors.Is(err, ErrGone) {
		return "gone"
	}
	if err != nil {
		t.Fatal(err)
	}
	color := func(e *Entry[thing]) string {
		if e == nil {
			return "-"
		}
		return e.Object().Color
	}
	var all []string
	for c := range changes {
		all = append(all, fmt.Sprintf("%s %s %s>%s", c.Version, c.Key, color(c.Old), color(c.New)))
	}
	return strings.Join(all, ", ")
}

func wantSince(t *testing.T, w *Writer[thing], v object.Version, want string) {
	t.Helper()
	if got := since(t, w, v); got != want {
		t.Errorf("Since(%q) = %q, want %q", v, got, want)
	}
	w.check(t)
}

func commit(w *Writer[thing], do func()) { w.Begin(); do(); w.Commit() }

func TestSinceReturnsTheChangesAfterAVersion(t *testing.T) {
	w := mustNew(t, Options[thing]{LogBytes: 1 << 20})
	commit(w, func() { put(w, 1, "a", "red"); put(w, 2, "b", "red") })
	commit(w, func() { put(w, 5, "a", "blue"); w.Delete("b", "6"); w.Delete("none", "7") })
	wantSince(t, w, "1", "2 b ->red, 5 a red>blue, 6 b red>-")
	wantSince(t, w, "2", "5 a red>blue, 6 b red>-")
	wantSince(t, w, "4", "5 a red>blue, 6 b red>-")
	wantSince(t, w, "6", "")
	wantSince(t, w, "7", "")
	wantSince(t, w, "1000", "")
	wantSince(t, w, "", "gone")
	wantSince(t, w, "0", "gone")
	wantSince(t, w, "abc", "gone")
	commit(w, func() { w.SetVersion("20") })
	wantSince(t, w, "5", "6 b red>-")
	wantSince(t, w, "15", "")
}

// If changes were coalesced, two states may have the same version. The changes since that version are unknown; those
// since a later one are known.
func TestSinceAVersionOfTwoStatesIsGone(t *testing.T) {
	w := mustNew(t, Options[thing]{LogBytes: 1 << 20})
	commit(w, func() { put(w, 1, "a", "red"); put(w, 2, "b", "red") })
	commit(w, func() { put(w, 9, "a", "blue"); w.SetVersion("2"); w.EndHistory() })
	wantSince(t, w, "2", "gone")
	commit(w, func() { w.SetVersion("2"); w.EndHistory() }) // a bookmark does not make the lost changes known
	wantSince(t, w, "2", "gone")
	commit(w, func() { put(w, 8, "b", "blue"); w.SetVersion("9"); w.EndHistory() })
	wantSince(t, w, "2", "gone")
	wantSince(t, w, "9", "")
	commit(w, func() { put(w, 10, "b", "green") })
	wantSince(t, w, "9", "10 b blue>green")

	list := func(v object.Version) {
		w.BeginReplace()
		w.Stage(object.Item[thing]{Key: "b", Version: "8", UID: "b", Size: 10, Value: thing{Name: "b", Color: "yellow"}})
		w.CommitReplace(v, nil)
	}
	list("10") // another state with the same version
	wantSince(t, w, "10", "gone")
	list("11")
	wantSince(t, w, "11", "")
}

// A server can send a version in a bookmark, and the changes up to it afterwards, from another replica. A reader that
// took a snapshot in between must not get a log without those changes.
func TestSinceAVersionBeforeALateChangeIsGone(t *testing.T) {
	w := mustNew(t, Options[thing]{LogBytes: 1 << 20})
	commit(w, func() { put(w, 4, "a", "red"); put(w, 4, "b", "red") })
	commit(w, func() { w.SetVersion("5") })
	commit(w, func() { put(w, 5, "a", "blue"); put(w, 6, "b", "blue"); put(w, 7, "b", "green") })
	wantSince(t, w, "4", "gone")
	wantSince(t, w, "5", "gone")
	wantSince(t, w, "6", "7 b blue>green")
	commit(w, func() { put(w, 8, "a", "green") })
	wantSince(t, w, "7", "8 a blue>green")
}

func TestSinceReturnsTheChangesAtTheTimeOfTheCall(t *testing.T) {
	w := mustNew(t, Options[thing]{LogBytes: 1000})
	commit(w, func() { put(w, 1, "a", "red") })
	commit(w, func() { put(w, 2, "a", "blue") })
	changes, err := w.Reader().Since("1")
	if err != nil {
		t.Fatal(err)
	}
	for i := 3; i < 200; i++ {
		commit(w, func() { put(w, i, "a", "green") })
	}
	var got []object.Version
	for c := range changes {
		got = append(got, c.Version)
	}
	if !slices.Equal(got, []object.Version{"2"}) {
		t.Errorf("later changes were added: %v", got)
	}
	for range changes { // they can be read twice, and a reader may stop early
		break
	}
}

func TestWithoutALogOnlyTheCurrentVersionIsKnown(t *testing.T) {
	w := mustNew(t, Options[thing]{})
	commit(w, func() { put(w, 1, "a", "red") })
	commit(w, func() { put(w, 2, "a", "blue") })
	wantSince(t, w, "1", "gone")
	wantSince(t, w, "2", "")
}

func TestLogIsBoundedByBytes(t *testing.T) {
	// An update from an object of size 10 to another one counts as 84 bytes.
	w := mustNew(t, Options[thing]{LogBytes: 84 * 3})
	commit(w, func() { put(w, 1, "a", "c1") })
	for i := 2; i <= 4; i++ {
		commit(w, func() { put(w, i, "a", fmt.Sprintf("c%d", i)) })
	}
	wantSince(t, w, "1", "2 a c1>c2, 3 a c2>c3, 4 a c3>c4")
	commit(w, func() { put(w, 5, "a", "c5") })
	wantSince(t, w, "1", "gone")
	wantSince(t, w, "2", "3 a c2>c3, 4 a c3>c4, 5 a c4>c5")
	commit(w, func() { w.Put(object.Item[thing]{Key: "huge", Version: "6", Size: 1 << 20}) })
	wantSince(t, w, "5", "gone")
	wantSince(t, w, "6", "")
}

func TestLogIsBoundedByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mustNew(t, Options[thing]{LogBytes: 1 << 20, LogAge: time.Minute})
		commit(w, func() { put(w, 1, "a", "c1") })
		time.Sleep(10 * time.Second)
		commit(w, func() { put(w, 2, "a", "c2") })
		time.Sleep(30 * time.Second)
		commit(w, func() { put(w, 3, "a", "c3") })
		time.Sleep(30 * time.Second) // the change to 2 is exactly a minute old
		wantSince(t, w, "1", "2 a c1>c2, 3 a c2>c3")
		time.Sleep(time.Second)
		wantSince(t, w, "1", "gone") // although there was no batch
		wantSince(t, w, "2", "3 a c2>c3")
		commit(w, func() {})
		if w.log.first == nil || w.log.first.entries[0].Version != "3" {
			t.Error("an empty batch has not released the changes that are too old")
		}
		time.Sleep(time.Hour)
		wantSince(t, w, "2", "gone")
		wantSince(t, w, "3", "")
		commit(w, func() {})
		if w.log.first != nil || w.log.bytes != 0 {
			t.Error("the log keeps changes that are an hour old")
		}
		commit(w, func() { put(w, 4, "a", "c4") })
		wantSince(t, w, "3", "4 a c3>c4")
	})
}

func TestTheFirstListStartsTheLogAndALaterOneEndsIt(t *testing.T) {
	w := mustNew(t, Options[thing]{LogBytes: 1 << 20})
	list := func(v object.Version, color string) {
		w.BeginReplace()
		w.Stage(object.Item[thing]{Key: "a", Version: v, Value: thing{Color: color}})
		w.CommitReplace(v, nil)
	}
	list("10", "red")
	wantSince(t, w, "9", "gone")
	wantSince(t, w, "10", "")
	commit(w, func() { put(w, 11, "a", "blue") })
	wantSince(t, w, "10", "11 a red>blue")
	list("20", "green")
	for _, v := range []object.Version{"10", "11", "19"} {
		wantSince(t, w, v, "gone")
	}
	wantSince(t, w, "20", "")
	commit(w, func() { put(w, 21, "a", "white") })
	wantSince(t, w, "20", "21 a green>white")
	list("21", "black") // the same version; the change that led to it is unknown
	wantSince(t, w, "20", "gone")
	list("5", "grey") // an older version: the source's history was reset
	wantSince(t, w, "5", "")
	wantSince(t, w, "4", "gone")
	commit(w, func() { put(w, 6, "a", "pink") })
	wantSince(t, w, "5", "6 a grey>pink")
}

func TestAListAfterPutsIsLoggedIfItIsTheFirst(t *testing.T) {
	w := mustNew(t, Options[thing]{LogBytes: 1 << 20})
	commit(w, func() { put(w, 1, "a", "red"); put(w, 2, "b", "red") })
	w.BeginReplace()
	w.Stage(object.Item[thing]{Key: "a", Version: "8", Value: thing{Color: "blue"}})
	w.CommitReplace("9", nil)
	wantSince(t, w, "1", "2 b ->red, 9 b red>-, 9 a red>blue")
	wantSince(t, w, "2", "9 b red>-, 9 a red>blue")
}

func TestAVersionThatGoesBackEndsTheLog(t *testing.T) {
	for _, back := range []object.Version{"1", "opaque"} {
		w := mustNew(t, Options[thing]{LogBytes: 1 << 20})
		commit(w, func() { put(w, 2, "a", "red") })
		commit(w, func() { put(w, 3, "a", "blue") })
		commit(w, func() { w.SetVersion(back) })
		wantSince(t, w, "2", map[object.Version]string{"1": "", "opaque": "gone"}[back])
		wantSince(t, w, back, "")
		if w.Reader().Version() != back {
			t.Errorf("version is %s", w.Reader().Version())
		}
	}
}

func TestResetEndsTheLog(t *testing.T) {
	w := mustNew(t, Options[thing]{LogBytes: 1 << 20})
	commit(w, func() { put(w, 1, "a", "red"); put(w, 2, "a", "blue") })
	w.Reset()
	wantSince(t, w, "1", "gone")
	wantSince(t, w, "2", "gone")
	commit(w, func() { put(w, 7, "a", "red"); put(w, 8, "a", "blue") })
	wantSince(t, w, "2", "gone")
	wantSince(t, w, "7", "8 a red>blue")
}

func TestVersionIsTheLastSetOrTheNewestPut(t *testing.T) {
	w := mustNew(t, Options[thing]{})
	r := w.Reader()
	for _, step := range []struct {
		do   func()
		want object.Version
	}{
		{func() {}, ""},
		{func() { put(w, 5, "a", "red") }, "5"},
		{func() { put(w, 3, "a", "red") }, "5"},
		{func() { put(w, 10, "a", "red") }, "10"},
		{func() { w.Delete("a", "12") }, "12"},
		{func() { w.Delete("a", "") }, "12"},
		{func() { w.SetVersion(""); w.SetVersion("20") }, "20"},
		{func() { w.SetVersion("30"); put(w, 35, "a", "red"); w.SetVersion("") }, "30"},
		{func() { w.Put(object.Item[thing]{Key: "a"}) }, "30"},
		{func() { w.Put(object.Item[thing]{Key: "a", Version: "opaque"}) }, "30"},
	} {
		commit(w, step.do)
		if r.Version() != step.want || r.Snapshot().Version() != step.want {
			t.Errorf("version = %s, snapshot %s, want %s", r.Version(), r.Snapshot().Version(), step.want)
		}
	}
	w.BeginReplace()
	w.CommitReplace("", nil)
	if r.Version() != "30" {
		t.Error("a list without a version changed the version")
	}
}

// A list that is older than the previous one starts a new history, even without a log and without a change.
func TestSinceKnowsItsOwnVersionAfterAListThatWentBack(t *testing.T) {
	w, err := New(Options[thing]{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []object.Version{"100", "50"} {
		w.BeginReplace()
		w.CommitReplace(v, nil)
		if _, err := w.Reader().Since(v); err != nil {
			t.Errorf("Since(%s), the current version: %v", v, err)
		}
	}
}
