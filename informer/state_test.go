package informer_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// thingCodec encodes things as text.
var thingCodec = &object.Codec[*thing]{
	Encode: func(dst []byte, x *thing) ([]byte, error) {
		return fmt.Appendf(dst, "%s %s %d", x.name, x.app, x.n), nil
	},
	Decode: func(b []byte) (*thing, error) {
		x := &thing{}
		_, err := fmt.Sscanf(string(b), "%s %s %d", &x.name, &x.app, &x.n)
		return x, err
	},
}

func savedState() *informer.State[*thing] {
	return &informer.State[*thing]{Version: "10", LastEvent: time.Unix(1700000000, 5).UTC(),
		Items: []object.Item[*thing]{item("a", 1, "u1"), item("b", 2, "")}}
}

func TestASavedStateIsReadAsItWas(t *testing.T) {
	want := savedState()
	var b bytes.Buffer
	if err := want.Write(&b, thingCodec); err != nil {
		t.Fatal(err)
	}
	got, err := informer.ReadState(&b, thingCodec)
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != want.Version || !got.LastEvent.Equal(want.LastEvent) || len(got.Items) != len(want.Items) {
		t.Fatalf("read %+v, want %+v", got, want)
	}
	for i := range got.Items {
		g, w := got.Items[i], want.Items[i]
		if g.Key != w.Key || g.Version != w.Version || g.UID != w.UID || g.Size != w.Size || *g.Value != *w.Value {
			t.Errorf("item %d is %+v, want %+v", i, g, w)
		}
	}
}

func TestADamagedStateIsNotRead(t *testing.T) {
	var b bytes.Buffer
	if err := savedState().Write(&b, thingCodec); err != nil {
		t.Fatal(err)
	}
	for n := range b.Len() {
		if _, err := informer.ReadState(bytes.NewReader(b.Bytes()[:n]), thingCodec); err == nil {
			t.Fatalf("the first %d of %d bytes are accepted", n, b.Len())
		}
		flipped := bytes.Clone(b.Bytes())
		flipped[n] ^= 1 << (n % 8)
		if s, err := informer.ReadState(bytes.NewReader(flipped), thingCodec); err == nil {
			t.Fatalf("a flipped bit in byte %d is accepted: %+v", n, s)
		}
	}
}

// What cannot be read is an error, and takes no more memory than there is input.
func FuzzReadState(f *testing.F) {
	var b bytes.Buffer
	if err := savedState().Write(&b, thingCodec); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := informer.ReadState(bytes.NewReader(in), thingCodec)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := s.Write(&again, thingCodec); err != nil {
			t.Fatal(err)
		}
		if back, err := informer.ReadState(&again, thingCodec); err != nil || len(back.Items) != len(s.Items) {
			t.Fatalf("written again: %v", err)
		}
	})
}

// packedState returns a state of the packed layout in the form in which it can be kept outside of the process. Nothing
// in it refers to the snapshot.
func packedState[T any](snap *store.Snapshot[T]) (*informer.State[T], error) {
	set, made := store.NewPackedBases(), map[uint64]*store.PackedBase{}
	var failed error
	var restore func(b *store.PackedBase) *store.PackedBase
	restore = func(b *store.PackedBase) *store.PackedBase {
		if b == nil || made[b.ID()] != nil {
			return made[baseID(b)]
		}
		again, err := set.Restore(b.ID(), restore(b.Parent()), strings.Clone(b.Data()), b.Shape(), b.Len())
		failed = errors.Join(failed, err)
		made[b.ID()] = again
		return again
	}
	var entries []store.PackedEntry
	for e := range snap.Entries() {
		obj, ok := e.Packed()
		if !ok {
			return nil, fmt.Errorf("%s is not packed", e.Key)
		}
		entries = append(entries, store.PackedEntry{Key: e.Key, Version: e.Version, UID: e.UID, Size: e.Size,
			Object: set.Packed(restore(obj.Base()), strings.Clone(obj.Data()))})
	}
	slices.SortFunc(entries, func(a, b store.PackedEntry) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return &informer.State[T]{Version: snap.Version(), LastEvent: time.Now(), Packed: yieldEach(entries)}, failed
}

func baseID(b *store.PackedBase) uint64 {
	if b == nil {
		return 0
	}
	return b.ID()
}

func yieldEach(entries []store.PackedEntry) iter.Seq2[store.PackedEntry, error] {
	return func(yield func(store.PackedEntry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func packed(o *options) { o.Layout, o.Codec = store.Packed, thingCodec }

func TestStartFromAPackedStateAsksForNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, ""), item("b", 2, "")}}), packed)
		first.run(t)
		saved, err := packedState(first.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := first.stop(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r := make1(t, newFeed(), packed, func(o *options) { o.StartFrom = saved })
		if h := r.Health().Reflector; !h.Restored || h.Age(time.Now()) != time.Minute {
			t.Errorf("before the start: restored %v, last-event age %s", h.Restored, h.Age(time.Now()))
		}
		rec := &recorder{}
		subscribe(t, r, rec, nil)
		r.run(t)
		r.say(put("a", 11, ""))
		synctest.Wait()
		got := rec.lines()
		slices.Sort(got[:2])
		same(t, "events", got, []string{"Added a new=1 initial", "Added b new=2 initial", "Updated a old=1 new=11"})
		if r.lists != 0 || r.watches[0].Version != "10" {
			t.Errorf("%d lists, watches %+v", r.lists, r.watches)
		}
		if r.Health().Reflector.Restored {
			t.Error("restored, although a watch is open")
		}
	})
}

// A state that is damaged, or that the history does not lead to, is listed again, and no object is lost or invented.
func TestStartFromAPackedStateThatCannotBeUsedLists(t *testing.T) {
	for name, spoil := range map[string]func(*informer.State[*thing]) *informer.State[*thing]{
		"unreadable": func(s *informer.State[*thing]) *informer.State[*thing] {
			whole := s.Packed
			s.Packed = func(yield func(store.PackedEntry, error) bool) {
				for e := range whole {
					yield(e, nil)
					break
				}
				yield(store.PackedEntry{}, errors.New("a block has another checksum"))
			}
			return s
		},
		"an object is newer": func(s *informer.State[*thing]) *informer.State[*thing] { s.Version = "1"; return s },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, ""), item("b", 2, "")}}), packed)
				first.run(t)
				saved, err := packedState(first.Snapshot())
				if err != nil {
					t.Fatal(err)
				}
				saved = spoil(saved)
				if err := first.stop(); err != nil {
					t.Fatal(err)
				}
				var problems []string
				r := make1(t, newFeed(state{20, []object.Item[*thing]{item("b", 2, ""), item("c", 15, "")}}), packed,
					func(o *options) {
						o.StartFrom = saved
						o.OnProblem = func(p informer.Problem) { problems = append(problems, p.Doing) }
					})
				r.run(t)
				synctest.Wait()
				if r.lists != 1 || r.Reader().Len() != 2 || r.Snapshot().Version() != "20" {
					t.Errorf("%d lists, %d objects at %s", r.lists, r.Reader().Len(), r.Snapshot().Version())
				}
				same(t, "problems", problems, []string{"start"})
			})
		})
	}
}

func TestAStateIsSavedOnlyWhenItIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, "")}}))
		if _, err := r.State(); err == nil {
			t.Error("an informer that has not run has a state")
		}
		r.run(t)
		s, err := r.State()
		if err != nil || s.Version != "10" || len(s.Items) != 1 || s.LastEvent.IsZero() {
			t.Errorf("state %+v, %v", s, err)
		}
	})
}
