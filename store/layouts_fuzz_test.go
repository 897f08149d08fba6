package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

// FuzzP15_LayoutsReadTheSame runs a script on a store of each layout and on a map, and compares them, while a reader
// of each store reads all objects.
func FuzzP15_LayoutsReadTheSame(f *testing.F) {
	f.Add([]byte("\x00red\x08green\x05\x10blue\x03\x05\x04\xff\x05"))
	f.Add([]byte("\x00live\x05\x00error\x05\x00panic\x05\x04\x01\x0b\x05"))
	// similar objects: with one base, with another, without one
	f.Add([]byte("\x06\x00\x16\x08\x26\x10\x05\x06\x60\x16\x68\x05\x03\x13\x23\x05\x0e\x01\x1e\x02\x04\x3f\x05"))
	f.Add([]byte("\x01\xff\xfe\x05\x09\x00\x00\x05\x11aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\x05\x04\x0f\x0b\x13\x1b"))
	f.Fuzz(func(t *testing.T, script []byte) {
		var stores []*fuzzedStore
		for _, l := range []Layout{Live, Shared, Packed} {
			stores = append(stores, newFuzzedStore(t, l))
		}
		stop := readBeside(stores...)
		defer stop()
		for _, s := range stores {
			s.play(script)
		}
		stop()
		for _, s := range stores {
			s.end()
		}
	})
}

// TestP15_ReadersReadWhileBasesChange runs random scripts on a packed store while readers read, and checks that the
// scripts make the store add, refresh and drop bases.
func TestP15_ReadersReadWhileBasesChange(t *testing.T) {
	rnd := seedOf(t)
	s := newFuzzedStore(t, Packed)
	stop := readBeside(s, s)
	defer stop()
	script := make([]byte, 300)
	for range 20 {
		for i := range script {
			script[i] = byte(rnd.Uint32())
		}
		s.play(script)
	}
	stop()
	s.end()
	saw := fmt.Sprintf("readers saw %d objects; there were up to %d bases, %d made anew, and fewer %d times",
		s.looked.Load(), s.most, s.refreshed, s.fewer)
	t.Log(saw)
	if s.looked.Load() == 0 || s.most < 2 || s.refreshed == 0 || s.fewer < 2 {
		t.Error(saw)
	}
}

// readBeside starts a reader of each store, which reads until the returned function is called.
func readBeside(stores ...*fuzzedStore) (stop func()) {
	var readers sync.WaitGroup
	var done atomic.Bool
	for _, s := range stores {
		readers.Go(func() {
			for !done.Load() && !s.readOnce() {
				runtime.Gosched()
			}
		})
	}
	return sync.OnceFunc(func() { done.Store(true); readers.Wait() })
}

// fuzzedStore is a store and a map with the objects that it must have.
type fuzzedStore struct {
	t      *testing.T
	layout Layout
	w      *Writer[thing]
	want   want
	rv     int
	open   bool
	held   []heldSnapshot
	torn   atomic.Pointer[string]
	looked atomic.Int64

	// How the bases that objects are packed against have changed.
	bases, most, fewer int
	refreshed          int64
}

func newFuzzedStore(t *testing.T, layout Layout) *fuzzedStore {
	s := &fuzzedStore{t: t, layout: layout,
		want: want{objects: map[object.Key]known{}, indexes: map[string]IndexFunc[thing]{"color": byColor, "tag": byTag}}}
	var err error
	s.w, err = New(Options[thing]{Indexes: maps.Clone(s.want.indexes), LogBytes: 2000, Layout: layout,
		Codec: thingCodec, ReadCache: 2})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// made returns the object of a key and a version. Its tags are a checksum of the rest, by which a reader detects an
// object that was never stored.
func made(key object.Key, version object.Version, color string) known {
	return known{Key: key, Version: version, UID: string(version[len(version)-1]), Size: len(color),
		Object: thing{Name: string(key), Color: color, Tags: sum(key, version, color)}}
}

func sum(key object.Key, version object.Version, color string) int {
	n := 7
	for _, b := range []byte(string(key) + string(version) + color) {
		n = n*31 + int(b)
	}
	return n & 0xff
}

// large returns a color that makes an object long enough for a base: the words of a family, of which the first
// strange/4 ones are replaced.
func large(family, strange byte) string {
	own, other := rand.New(rand.NewPCG(uint64(family), 1)), rand.New(rand.NewPCG(uint64(strange), 2))
	var text []byte
	for i := range 64 {
		word := own.Uint32()
		if i < int(strange)/4 {
			word = other.Uint32()
		}
		text = fmt.Appendf(text, "w%d-g ", word)
	}
	return string(text)
}

// play runs a script. Each step is one byte for the operation and the key; a Put has a few more for the object.
func (s *fuzzedStore) play(script []byte) {
	for steps := 0; len(script) > 0 && steps < 200; steps++ {
		op, key := script[0]%8, object.Key(fmt.Sprintf("k%d", script[0]>>3%6))
		script = script[1:]
		switch op {
		case 0, 1, 2:
			n := min(len(script), 1+int(op)*13)
			s.begin()
			e := made(key, s.next(), string(script[:n]))
			s.w.Put(e.item())
			s.want.objects[key], s.want.version = e, e.Version
			script = script[n:]
		case 6:
			strange := byte(0)
			if len(script) > 0 {
				strange = script[0]
				script = script[1:]
			}
			s.begin()
			e := made(key, s.next(), large(key[1]%2, strange))
			s.w.Put(e.item())
			s.want.objects[key], s.want.version = e, e.Version
		case 3:
			s.begin()
			v := s.next()
			s.w.Delete(key, v)
			delete(s.want.objects, key)
			s.want.version = v
		case 4:
			mask := byte(0)
			if len(script) > 0 {
				mask = script[0]
				script = script[1:]
			}
			s.list(mask)
		default:
			s.commit()
			s.check()
			if len(s.held) < 4 {
				now := s.want
				now.objects = maps.Clone(now.objects)
				s.held = append(s.held, heldSnapshot{s.w.Reader().Snapshot(), now})
			}
		}
	}
	s.commit()
}

func (s *fuzzedStore) next() object.Version {
	s.rv++
	return object.Version(strconv.Itoa(s.rv))
}

func (s *fuzzedStore) begin() {
	if !s.open {
		s.w.Begin()
		s.open = true
	}
}

func (s *fuzzedStore) commit() {
	if s.open {
		s.w.Commit()
		s.open = false
		s.want.seq++
		s.countBases()
	}
}

// countBases counts the bases and checks that there is one if there are large objects.
func (s *fuzzedStore) countBases() {
	s.t.Helper()
	if s.layout != Packed {
		return
	}
	stats := s.w.keeper.packer.Stats()
	if stats.Bases < s.bases {
		s.fewer++
	}
	s.bases, s.most, s.refreshed = stats.Bases, max(s.most, stats.Bases), stats.Refreshed
	for _, e := range s.want.objects {
		if len(e.Object.Color) > 500 && stats.Bases == 0 {
			s.t.Fatalf("%s is large, but there is no base: %+v", e.Key, stats)
		}
	}
}

// end deletes all objects and checks that no base is left and that old snapshots can still be read.
func (s *fuzzedStore) end() {
	s.t.Helper()
	if torn := s.torn.Load(); torn != nil {
		s.t.Fatalf("%s: %s", s.layout, *torn)
	}
	s.check()
	s.begin()
	for key := range s.want.objects {
		s.want.version = s.next()
		s.w.Delete(key, s.want.version)
	}
	clear(s.want.objects)
	s.commit()
	s.check()
	for _, h := range s.held {
		checkSnapshot(s.t, h.s, h.want)
	}
	if s.layout == Packed {
		if stats := s.w.keeper.packer.Stats(); stats.Objects != 0 || stats.Bases != 0 {
			s.t.Fatalf("all objects are deleted, but the statistics are %+v", stats)
		}
	}
}

// list replaces the contents of the store by the keys of the mask. Stored objects stay as they are.
func (s *fuzzedStore) list(mask byte) {
	s.commit()
	s.w.BeginReplace()
	after := map[object.Key]known{}
	for i := range 6 {
		key := object.Key(fmt.Sprintf("k%d", i))
		if mask&(1<<i) == 0 {
			continue
		}
		e, had := s.want.objects[key]
		if !had || !s.w.Seen(key, e.Version, e.UID) {
			e = made(key, s.next(), "listed")
			if i > 2 {
				e = made(key, e.Version, large(byte(i%2), mask))
			}
			s.w.Stage(e.item())
		}
		after[key] = e
	}
	if mask&(1<<7) != 0 {
		s.w.AbortReplace()
		return
	}
	v := s.next()
	s.w.CommitReplace(v, func(old, now *Entry[thing]) {})
	s.want.objects, s.want.version = after, v
	s.want.seq++
	s.countBases()
}

func (s *fuzzedStore) check() {
	s.t.Helper()
	s.w.check(s.t)
	checkSnapshot(s.t, s.w.Reader().Snapshot(), s.want)
}

// readOnce reads all objects, by snapshot and by key, and reports whether it read a state that was never stored.
func (s *fuzzedStore) readOnce() (torn bool) {
	r := s.w.Reader()
	look := func(e *Entry[thing]) {
		if o := e.Object(); o.Name != string(e.Key) || o.Tags != sum(e.Key, e.Version, o.Color) {
			text := fmt.Sprintf("a reader found %+v as %s at %s", o, e.Key, e.Version)
			s.torn.Store(&text)
			torn = true
		}
		s.looked.Add(1)
	}
	for e := range r.Snapshot().Entries() {
		look(e)
	}
	for i := range 6 {
		if e, ok := r.Entry(object.Key(fmt.Sprintf("k%d", i))); ok {
			look(e)
		}
	}
	return torn
}
