package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// thing is the object of the tests.
type thing struct {
	Name, Color string
	Tags        int // a bit for each tag
}

func byColor(o thing) ([]string, error) {
	switch o.Color {
	case "error":
		return []string{"ignored"}, errors.New("no color")
	case "panic":
		panic("bad color")
	case "none":
		return nil, nil
	}
	return []string{o.Color}, nil
}

func byTag(o thing) ([]string, error) {
	var tags []string
	for i := range 8 {
		if o.Tags&(1<<i) != 0 {
			tags = append(tags, fmt.Sprintf("t%d", i), fmt.Sprintf("t%d", i/2)) // some of them twice
		}
	}
	return tags, nil
}

func byName(o thing) ([]string, error) { return []string{o.Name}, nil }

// seedOf returns random numbers with a new seed, or with the seed in STORE_SEED.
func seedOf(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("STORE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("to reproduce: STORE_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// model is the expected state of a store, in plain maps.
type model struct {
	t    *testing.T
	rnd  *rand.Rand
	w    *Writer[thing]
	keys int
	rv   int
	want want
	log  []knownChange // since the store's log was last ended
	held []heldSnapshot

	fetched []object.Key // and not written or read since
}

// knownChange is a change of the model; the zero known stands for no object.
type knownChange struct {
	Version  object.Version
	Key      object.Key
	Old, New known
}

type heldSnapshot struct {
	s *Snapshot[thing]
	want
}

func (m *model) key() object.Key { return object.Key(fmt.Sprintf("k%d", m.rnd.IntN(m.keys))) }

func (m *model) next() object.Version {
	m.rv += 1 + m.rnd.IntN(3)
	return object.Version(strconv.Itoa(m.rv))
}

func (m *model) entry(key object.Key) known {
	colors := []string{"red", "green", "blue", "error", "panic", "none", "live", string(key)}
	return known{
		Key: key, Version: m.next(), UID: strconv.Itoa(m.rnd.IntN(2)), Size: m.rnd.IntN(50),
		Object: thing{Name: string(key), Color: colors[m.rnd.IntN(len(colors))], Tags: m.rnd.IntN(256) & m.rnd.IntN(256)},
	}
}

func (m *model) note(v object.Version, key object.Key, old, now known) {
	m.log = append(m.log, knownChange{v, key, old, now})
	m.want.version = v
}

func (m *model) batch() {
	if m.rnd.IntN(10) == 0 {
		m.fetch()
	}
	m.w.Begin()
	for range m.rnd.IntN(20) {
		if m.rnd.IntN(8) == 0 {
			m.fetch()
		}
		key := m.key()
		if n := len(m.fetched); n > 0 && m.rnd.IntN(4) > 0 {
			skip := m.rnd.IntN(min(n, 2))
			key, m.fetched = m.fetched[skip], m.fetched[skip+1:]
		}
		old, had := m.want.objects[key]
		if m.rnd.IntN(3) > 0 {
			e := m.entry(key)
			now, got := m.w.Put(e.item())
			if (got != nil) != had || of(got) != old || of(now) != e {
				m.t.Fatalf("Put(%q) returned %+v, %+v, want %+v, %+v", key, of(now), of(got), e, old)
			}
			m.want.objects[key] = e
			m.note(e.Version, key, old, e)
		} else {
			v := m.next()
			got := m.w.Delete(key, v)
			if (got != nil) != had || of(got) != old {
				m.t.Fatalf("Delete(%q) returned %+v, want %+v, %v", key, of(got), old, had)
			}
			delete(m.want.objects, key)
			m.want.version = v
			if had {
				m.note(v, key, old, known{})
			}
		}
		if got, ok := m.w.Get(key); ok != hasKey(m.want.objects, key) || of(got) != m.want.objects[key] {
			m.t.Fatalf("inside the batch, Get(%q) = %+v, %v", key, of(got), ok)
		}
	}
	if m.rnd.IntN(4) == 0 {
		v := m.next()
		m.w.SetVersion(v)
		m.want.version = v
	}
	m.committed(m.w.Commit())
}

// fetch fetches some keys, of which some are stored. It must not affect what happens to them later.
func (m *model) fetch() {
	keys := make([]object.Key, m.rnd.IntN(2*Together))
	for i := range keys {
		keys[i] = m.key()
	}
	m.w.Fetch(keys)
	m.fetched = keys
}

func hasKey(o map[object.Key]known, k object.Key) bool { _, ok := o[k]; return ok }

func (m *model) committed(seq uint64) {
	m.want.seq++
	if seq != m.want.seq {
		m.t.Fatalf("the batch has number %d, want %d", seq, m.want.seq)
	}
}

func (m *model) list() {
	m.w.BeginReplace()
	after := map[object.Key]known{}
	var order []object.Key
	for _, i := range m.rnd.Perm(m.keys) {
		key := object.Key(fmt.Sprintf("k%d", i))
		old, had := m.want.objects[key]
		switch m.rnd.IntN(5) {
		case 0: // not in the list
		case 1:
			if m.w.Keep(key) != had {
				m.t.Fatalf("Keep(%q) = %v", key, !had)
			}
			if had {
				after[key] = old
			}
		case 2, 3:
			if m.w.Seen(key, old.Version, old.UID) != had {
				m.t.Fatalf("Seen(%q) = %v", key, !had)
			}
			if had {
				after[key] = old
			}
		case 4:
			e := m.entry(key)
			if m.rnd.IntN(3) == 0 {
				m.w.Stage(m.entry(key).item()) // to be replaced
			}
			m.w.Stage(e.item())
			after[key] = e
			order = append(order, key)
			if had && m.rnd.IntN(4) == 0 { // overridden by a later item
				if !m.w.Seen(key, old.Version, "") {
					m.t.Fatalf("Seen(%q) after Stage = false", key)
				}
				after[key] = old
				order = order[:len(order)-1]
			}
		}
	}
	if m.rnd.IntN(4) == 0 {
		m.w.AbortReplace()
		return
	}
	v := m.next()
	deleted, changed := map[object.Key]bool{}, []object.Key{}
	m.committed(m.w.CommitReplace(v, func(old, now *Entry[thing]) {
		switch {
		case now == nil:
			if len(changed) > 0 || of(old) != m.want.objects[old.Key] {
				m.t.Fatalf("delete of %+v after %d other changes", of(old), len(changed))
			}
			deleted[old.Key] = true
		default:
			if before, had := m.want.objects[now.Key]; (old != nil) != had || of(old) != before || of(now) != after[now.Key] {
				m.t.Fatalf("change of %q from %v to %v", now.Key, old, now)
			}
			changed = append(changed, now.Key)
		}
	}))
	if !slices.Equal(changed, order) {
		m.t.Fatalf("changes came as %v, want %v", changed, order)
	}
	for key := range m.want.objects {
		if deleted[key] == hasKey(after, key) {
			m.t.Fatalf("%q announced as deleted: %v", key, deleted[key])
		}
	}
	m.want.objects, m.want.version, m.log = after, v, []knownChange{{Version: v}}
}

func (m *model) checkNow() {
	m.w.check(m.t)
	s := m.w.Reader().Snapshot()
	checkSnapshot(m.t, s, m.want)
	if m.rnd.IntN(3) == 0 {
		kept := heldSnapshot{s, m.want}
		kept.objects = maps.Clone(m.want.objects)
		kept.indexes = maps.Clone(m.want.indexes)
		m.held = append(m.held, kept)
	}
	if len(m.held) > 8 {
		m.held = slices.Delete(m.held, 0, 1+m.rnd.IntN(4))
	}
	r := m.w.Reader()
	if r.Len() != len(m.want.objects) || r.Version() != m.want.version || m.w.objects.n != r.Len() {
		m.t.Fatalf("the reader has length %d and version %q", r.Len(), r.Version())
	}
	for key, e := range m.want.objects {
		if got, ok := r.Entry(key); !ok || of(got) != e {
			m.t.Fatalf("reader's Entry(%q) = %+v, %v", key, of(got), ok)
		}
	}
	m.checkSince()
}

// checkSince reads the changes since a version of the model's log: the store has the same ones or has dropped them.
func (m *model) checkSince() {
	if len(m.log) == 0 {
		return
	}
	from := m.rnd.IntN(len(m.log))
	changes, err := m.w.Reader().Since(m.log[from].Version)
	if err != nil {
		if !errors.Is(err, ErrGone) || m.w.sh.cfg.logBytes > 0 && !m.log[from].Version.Before(m.w.log.start) {
			m.t.Fatalf("Since(%s): %v", m.log[from].Version, err)
		}
		return
	}
	i := from + 1
	for c := range changes {
		if i >= len(m.log) || c.Version != m.log[i].Version || c.Key != m.log[i].Key ||
			of(c.Old) != m.log[i].Old || of(c.New) != m.log[i].New {
			m.t.Fatalf("Since(%s) yields %+v as number %d of %d", m.log[from].Version, c, i, len(m.log))
		}
		i++
	}
	if i != len(m.log) {
		m.t.Fatalf("Since(%s) ends at %d of %d", m.log[from].Version, i, len(m.log))
	}
}

// thingCodec encodes things as JSON. A thing of the color "live" is decoded to another object, so it cannot be packed.
var thingCodec = &object.Codec[thing]{
	Encode: func(dst []byte, o thing) ([]byte, error) {
		encoded, err := json.Marshal(o)
		return append(dst, encoded...), err
	},
	Decode: func(encoded []byte) (o thing, err error) {
		if err = json.Unmarshal(encoded, &o); o.Color == "live" {
			o.Tags++
		}
		return o, err
	},
}

func TestStoreBehavesLikeAMap(t *testing.T) {
	for _, layout := range []Layout{Live, Shared, Packed} {
		t.Run(layout.String(), func(t *testing.T) { testModel(t, layout) })
	}
}

func testModel(t *testing.T, layout Layout) {
	for _, size := range []struct{ keys, steps, logBytes int }{{8, 400, 500}, {8, 400, 0},
		{60, 200, 20000}, {2000, 30, 0}} {
		t.Run(fmt.Sprintf("%d keys, a log of %d bytes", size.keys, size.logBytes), func(t *testing.T) {
			m := &model{t: t, rnd: seedOf(t), keys: size.keys}
			m.want.objects = map[object.Key]known{}
			m.want.indexes = map[string]IndexFunc[thing]{"color": byColor, "tag": byTag}
			var err error
			m.w, err = New(Options[thing]{Indexes: maps.Clone(m.want.indexes), LogBytes: size.logBytes, Layout: layout,
				Codec: thingCodec, ReadCache: 4})
			if err != nil {
				t.Fatal(err)
			}
			for step := range size.steps {
				switch n := m.rnd.IntN(100); {
				case n < 6 || size.keys > 1000 && n < 30:
					m.list()
				case n == 6:
					m.w.Reset()
					m.want.objects, m.want.version, m.log = map[object.Key]known{}, "", nil
					m.want.seq++
				case n == 7 && step > size.steps/3:
					add := map[string]IndexFunc[thing]{fmt.Sprintf("name%d", step): byName}
					maps.Copy(m.want.indexes, add)
					if err := m.w.AddIndexes(add); err != nil {
						t.Fatal(err)
					}
				default:
					m.batch()
				}
				if m.rnd.IntN(2) == 0 {
					m.checkNow()
				}
				for _, h := range m.held {
					if m.rnd.IntN(6) == 0 {
						checkSnapshot(t, h.s, h.want)
					}
				}
			}
			m.checkNow()
			for _, h := range m.held {
				checkSnapshot(t, h.s, h.want)
			}
		})
	}
}
