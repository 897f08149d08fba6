package disk

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nightly says that tests use their full numbers.
var nightly = os.Getenv("MIRADOR_NIGHTLY") != ""

var silent = slog.New(slog.NewTextHandler(io.Discard, nil))

// number returns the full number if MIRADOR_NIGHTLY is set.
func number(quick, full int) int {
	if nightly {
		return full
	}
	return quick
}

var plain = &object.Codec[[]byte]{
	Encode: func(dst []byte, b []byte) ([]byte, error) { return append(dst, b...), nil },
	Decode: func(b []byte) ([]byte, error) { return bytes.Clone(b), nil },
}

// A mirror packs objects as the store of a mirrored resource does.
type mirror struct {
	res    Resource
	writer *store.Writer[[]byte]
}

func newMirror(t testing.TB, res Resource) *mirror {
	w, err := store.New(store.Options[[]byte]{Layout: store.Packed, Codec: plain})
	if err != nil {
		t.Fatal(err)
	}
	return &mirror{res, w}
}

// state packs a state of an object.
func (m *mirror) state(t testing.TB, key object.Key, version int, at time.Time, json []byte, labels ...string) State {
	v := object.Version(fmt.Sprint(version))
	uid := uidOfKey(key)
	m.writer.Begin()
	now, _ := m.writer.Put(object.Item[[]byte]{Key: key, Version: v, UID: uid, Size: len(json), Value: json})
	m.writer.Commit()
	o, ok := now.Packed()
	if !ok {
		t.Fatalf("%s is not packed", key)
	}
	return State{Key: key, Version: v, UID: uid, Size: len(json), Time: at, Object: o, Labels: labels}
}

func (m *mirror) delete(key object.Key, version int) {
	m.writer.Begin()
	m.writer.Delete(key, object.Version(fmt.Sprint(version)))
	m.writer.Commit()
}

func uidOfKey(key object.Key) string {
	r := rand.New(rand.NewPCG(uint64(len(key)), uint64(key[len(key)-1])))
	return fmt.Sprintf("%08x-%04x-4000-8000-%012x", r.Uint32(), r.Uint32()&0xffff, r.Uint64()&0xffffffffffff)
}

// jsonOf returns an object that resembles others of the same family.
func jsonOf(key object.Key, family, version int, detail string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"%d"},`,
		key.Name(), key.Namespace(), uidOfKey(key), version)
	fmt.Fprintf(&b, `"spec":{"containers":[`)
	r := rand.New(rand.NewPCG(uint64(family), 7))
	for i := range 6 {
		fmt.Fprintf(&b, `{"name":"c%d","image":"registry.example/%x/%x:%d","args":["--token=%x"]},`, i, r.Uint64(), r.Uint64(),
			r.IntN(100), r.Uint64())
	}
	fmt.Fprintf(&b, `{}]},"status":{"phase":"Running","detail":%q}}`, detail)
	return b.Bytes()
}

// quiet are options with a file system in memory.
func quiet(fs vfs.FS) Options {
	return Options{FS: fs, Logger: silent, tune: smallEngine}
}

// smallEngine makes pebble flush and compact often.
func smallEngine(s *engineSizes) {
	s.memtable, s.table, s.base, s.cache, s.block = 256<<10, 64<<10, 256<<10, 256<<10, 4<<10
	s.manifest = 64 << 10
}

func mustOpen(t testing.TB, dir string, o Options) *Disk {
	t.Helper()
	d, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustClose(t testing.TB, d *Disk) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustCommit(t testing.TB, b *Batch) {
	t.Helper()
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
}

// seen is what a test compares of a state.
type seen struct {
	key     object.Key
	version object.Version
	at      int64
	json    string
	deleted bool
}

func seenOf(t testing.TB, s *State) seen {
	t.Helper()
	json, err := s.AppendJSON(nil)
	if err != nil {
		t.Fatalf("read %s at version %s: %v", s.Key, s.Version, err)
	}
	if len(json) != s.Size {
		t.Fatalf("%s has %d bytes and the size %d", s.Key, len(json), s.Size)
	}
	return seen{s.Key, s.Version, nanos(s.Time), string(json), false}
}

func restoredStates(t testing.TB, r *Restored) (all []seen) {
	t.Helper()
	for s, err := range r.States() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, seenOf(t, &s))
	}
	return all
}

func compareSeen(t testing.TB, what string, got, want []seen) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			show := func(s []seen) string {
				if i >= len(s) {
					return "nothing"
				}
				return fmt.Sprintf("%s version %s at %d deleted %v", s[i].key, s[i].version, s[i].at, s[i].deleted)
			}
			t.Fatalf("%s: %d states, want %d; the first that differs is number %d: %s, want %s", what, len(got), len(want), i,
				show(got), show(want))
		}
	}
}
