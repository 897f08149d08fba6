//go:build !race

package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mirador-k8s/mirador/object"
)

// A model keeps every state of some resources in memory.
type model struct {
	t         *testing.T
	r         *rand.Rand
	now       time.Time
	disk      *Disk
	fs        vfs.FS
	opts      Options
	resources []*modelResource
	noRoom    bool
	pace
}

// pace is how fast and how often things happen in a model.
type pace struct {
	minute  time.Duration // the unit of all times
	names   int           // of objects in each namespace
	changes int           // at most, of each resource in each step
	rare    int           // one in so many steps restarts, one drops history, and so on
}

// With wide, things hardly ever happen at the same time. With dense, all happens within some nanoseconds, so that
// changes, gaps, the beginnings of segments and that of the history coincide.
var (
	wide  = pace{minute: time.Minute, names: 30, changes: 8, rare: 20}
	dense = pace{minute: 4, names: 2, changes: 3, rare: 8}
)

type modelResource struct {
	*mirror
	opts    ResourceOptions
	id      int // of the fingerprint
	version int
	last    int64 // time of the last change
	reached int64
	begin   int64
	paused  int64
	objects map[object.Key]*modelObject
	gaps    []Gap
}

// modelObject has the changes of one object, oldest first.
type modelObject struct {
	changes []modelChange
	family  int
}

type modelChange struct {
	seen
	labels     []string
	unrecorded bool // no history has it
}

func (o *modelObject) at(at int64) *modelChange {
	for i := len(o.changes) - 1; i >= 0; i-- {
		if c := &o.changes[i]; c.at <= at {
			if c.deleted {
				return nil
			}
			return c
		}
	}
	return nil
}

func newModel(t *testing.T, seed uint64, p pace) *model {
	m := &model{t: t, r: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_700_000_000, 0), fs: vfs.NewMem(), pace: p}
	m.opts = quiet(m.fs)
	m.opts.now = func() time.Time { return m.now }
	m.opts.Key = []byte("0123456789abcdef0123456789abcdef")
	m.opts.HistoryAge = 90 * m.minute
	m.opts.noRoom = func() bool { return m.noRoom }
	m.disk = mustOpen(t, "data", m.opts)
	for i, o := range []ResourceOptions{{History: true}, {History: true, Sealed: true}, {}, {History: true}} {
		res := Resource{fmt.Sprint("cluster", i/2), "", "v1", fmt.Sprint("things", i)}
		m.resources = append(m.resources, &modelResource{mirror: newMirror(t, res), opts: o,
			objects: map[object.Key]*modelObject{}})
	}
	m.reopenResources()
	return m
}

// reopenResources says again how resources are kept, as a process does that starts.
func (m *model) reopenResources() {
	b := m.disk.NewBatch()
	for _, r := range m.resources {
		b.SetCluster(r.res.Cluster, "uid")
		if err := b.Open(r.res, r.opts); err != nil {
			m.t.Fatal(err)
		}
	}
	mustCommit(m.t, b)
}

// step makes some random changes, and commits them.
func (m *model) step() {
	m.now = m.now.Add(time.Duration(m.r.IntN(int(2 * m.minute))))
	later := m.now
	b := m.disk.NewBatch()
	for _, r := range m.resources {
		for range m.r.IntN(m.changes) {
			m.change(b, r)
		}
		if m.r.IntN(3) > 0 {
			m.touch(r)
			r.reached = max(m.now.UnixNano(), r.last)
			b.Reach(r.res, object.Version(fmt.Sprint(r.version)), m.now)
			if r.begin == 0 && r.opts.History {
				r.begin = r.reached
			}
		}
		if m.r.IntN(50) == 0 {
			m.touch(r)
			from, to := m.now, m.now.Add(m.minute)
			b.Gap(r.res, from, to)
			r.addGap(from.UnixNano(), to.UnixNano())
			later = to
		}
	}
	mustCommit(m.t, b)
	m.now = later
}

// touch begins or ends a pause of the history, as the first change of a resource in a batch does.
func (m *model) touch(r *modelResource) {
	switch {
	case !r.opts.History || m.noRoom == (r.paused != 0):
	case m.noRoom:
		r.paused = max(r.last, 1)
	default:
		r.addGap(r.paused, max(r.last, m.now.UnixNano()))
		r.paused = 0
	}
}

// addGap adds a gap. Two that begin at the same time are one.
func (r *modelResource) addGap(from, to int64) {
	if to <= from {
		return
	}
	for i := range r.gaps {
		if g := &r.gaps[i]; nanos(g.From) == from {
			g.To = time.Unix(0, max(nanos(g.To), to))
			return
		}
	}
	r.gaps = append(r.gaps, Gap{time.Unix(0, from), time.Unix(0, to)})
}

// gapsBetween returns the gaps between two times, by their beginnings.
func (r *modelResource) gapsBetween(from, to int64) (all []Gap) {
	for _, g := range r.gaps {
		if nanos(g.From) < to && from < nanos(g.To) {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b Gap) int { return a.From.Compare(b.From) })
	if r.paused != 0 && r.paused < to {
		all = append(all, Gap{From: time.Unix(0, r.paused)})
	}
	return all
}

// change makes one random change.
func (m *model) change(b *Batch, r *modelResource) {
	m.touch(r)
	r.version += 1 + m.r.IntN(3)
	key := object.NewKey(fmt.Sprint("ns", m.r.IntN(4)), fmt.Sprint("object-", 3+m.r.IntN(m.names)))
	o := r.objects[key]
	if o == nil {
		o = &modelObject{family: m.r.IntN(5)}
		r.objects[key] = o
	}
	exists := len(o.changes) > 0 && !o.changes[len(o.changes)-1].deleted
	if exists && r.paused != 0 { // what was written in a pause and is replaced in it was never kept
		if last := len(o.changes) - 1; o.changes[last].at > r.paused && o.changes[last].unrecorded {
			o.changes = o.changes[:last]
		}
	}
	at := m.now
	if m.r.IntN(10) == 0 {
		at = at.Add(-60 * m.minute) // a clock that goes back
	}
	if exists && m.r.IntN(5) == 0 {
		r.last = max(at.UnixNano(), r.last+1, r.begin+1)
		b.Delete(r.res, key, object.Version(fmt.Sprint(r.version)), at)
		r.delete(key, r.version)
		o.changes = append(o.changes, modelChange{seen: seen{key: key, version: object.Version(fmt.Sprint(r.version)),
			at: r.last, deleted: true}})
		return
	}
	r.last = max(at.UnixNano(), r.last+1, r.begin+1)
	detail := fmt.Sprint(m.r.Uint64())
	if m.r.IntN(20) == 0 {
		detail = strings.Repeat(detail, 300)
	}
	json := jsonOf(key, o.family, r.version, detail)
	labels := []string{fmt.Sprint("app=", o.family)}
	if m.r.IntN(4) == 0 {
		labels = append(labels, fmt.Sprint("track=", m.r.IntN(3)))
	}
	b.Put(r.res, r.state(m.t, key, r.version, at, json, labels...))
	o.changes = append(o.changes, modelChange{seen{key, object.Version(fmt.Sprint(r.version)), r.last, string(json), false},
		labels, r.paused != 0})
}

// restart closes the folder and opens it again.
func (m *model) restart() {
	mustClose(m.t, m.disk)
	m.disk = mustOpen(m.t, "data", m.opts)
	m.reopenResources()
}

// retain drops old history, and what the model has of it.
func (m *model) retain() {
	if err := m.disk.retain(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	for _, r := range m.resources {
		begin, err := m.disk.Begin(r.res)
		if err != nil {
			m.t.Fatal(err)
		}
		r.last = m.lastOf(r.res)
		if r.begin == 0 || !r.opts.History {
			continue
		}
		if begin.UnixNano() < r.begin || begin.After(m.now.Add(-m.opts.HistoryAge)) && begin.UnixNano() != r.begin {
			m.t.Fatalf("the history of %s begins at %s, and began at %s; it is %s", r.res, begin, time.Unix(0, r.begin), m.now)
		}
		r.begin = begin.UnixNano()
		if err := m.disk.collect(r.res, m.id(r.res)); err != nil {
			m.t.Fatal(err)
		}
	}
}

// lastOf returns the time of a resource's last change, which a new segment moves.
func (m *model) lastOf(res Resource) int64 {
	v, err := m.disk.view(res)
	if err != nil {
		m.t.Fatal(err)
	}
	defer v.close()
	return v.progress.last
}

func (m *model) id(res Resource) uint32 {
	v, err := m.disk.view(res)
	if err != nil {
		m.t.Fatal(err)
	}
	defer v.close()
	return v.desc.id
}

// check compares every read with the model.
func (m *model) check() {
	for _, r := range m.resources {
		m.checkNewest(r)
		if !r.opts.History {
			if _, err := m.disk.At(r.res, m.now, Filter{}); !errors.As(err, new(*NoHistoryError)) {
				m.t.Fatalf("At without history: %v", err)
			}
			continue
		}
		if r.begin == 0 {
			continue
		}
		some := func() int64 { return r.begin + m.r.Int64N(max(m.now.UnixNano(), r.last, r.begin)-r.begin+1) }
		m.checkAt(r, r.begin)
		for range 5 {
			at := some()
			if m.r.IntN(3) == 0 {
				at = m.someTime(r, at)
			}
			m.checkAt(r, at)
		}
		if _, err := m.disk.At(r.res, time.Unix(0, r.begin-1), Filter{}); !errors.As(err, new(*BeforeHistoryError)) {
			m.t.Fatalf("At before the history: %v", err)
		}
		from := some()
		m.checkHistory(r, from, from+m.r.Int64N(int64(300*m.minute)))
		from = m.someTime(r, from)
		m.checkHistory(r, from, m.someTime(r, from))
		m.checkHistory(r, r.begin, m.now.Add(time.Hour).UnixNano())
		m.checkObjects(r, m.someTime(r, some()))
	}
}

// someTime returns the time of a change, exactly.
func (m *model) someTime(r *modelResource, otherwise int64) int64 {
	keys := sortedKeys(r.objects)
	if len(keys) == 0 {
		return otherwise
	}
	changes := r.objects[keys[m.r.IntN(len(keys))]].changes
	if len(changes) == 0 {
		return otherwise
	}
	if at := changes[m.r.IntN(len(changes))].at; at >= r.begin {
		return at
	}
	return otherwise
}

func (m *model) checkNewest(r *modelResource) {
	want := m.statesOf(r, func(o *modelObject) *modelChange { return o.at(1 << 62) })
	var keys []seen
	for n, err := range m.disk.Keys(r.res) {
		if err != nil {
			m.t.Fatal(err)
		}
		keys = append(keys, seen{key: n.Key, version: n.Version})
	}
	compareSeen(m.t, "Keys", keys, mapSeen(want, func(s seen) seen { return seen{key: s.key, version: s.version} }))
	if r.reached == 0 {
		return
	}
	got, err := m.disk.Restore(r.res)
	if err != nil {
		m.t.Fatal(err)
	}
	if nanos(got.Reached) != r.reached {
		m.t.Fatalf("%s was reached at %d, want %d", r.res, nanos(got.Reached), r.reached)
	}
	compareSeen(m.t, "Restore of "+r.res.String(), restoredStates(m.t, got), want)
}

// checkAt compares the state of a moment, with every filter.
func (m *model) checkAt(r *modelResource, at int64) {
	gap := len(r.gapsBetween(at, at)) > 0
	want := m.statesOf(r, func(o *modelObject) *modelChange { return o.at(at) })
	read := func(f Filter) []seen {
		got, err := m.disk.At(r.res, time.Unix(0, at), f)
		if err != nil {
			m.t.Fatal(err)
		}
		if (got.Gap != nil) != gap {
			m.t.Fatalf("At %d is in the gap %v, want one: %v", at, got.Gap, gap)
		}
		return restoredStates(m.t, got)
	}
	if gap {
		read(Filter{}) // the state in a pause is not exact, but it can be read
		return
	}
	compareSeen(m.t, fmt.Sprint("At ", at), read(Filter{}), want)
	compareSeen(m.t, fmt.Sprint("At of a namespace ", at), read(Filter{Namespace: "ns1"}),
		filterSeen(want, func(s seen) bool { return s.key.Namespace() == "ns1" }))
	for _, s := range want {
		compareSeen(m.t, "At of a key", read(Filter{Key: s.key}), []seen{s})
		break
	}
	for _, label := range []string{"app=1", "track=2"} {
		got := read(Filter{Label: label, Namespace: "ns2"})
		for _, s := range want {
			has := slices.Contains(r.objects[s.key].at(at).labels, label) && s.key.Namespace() == "ns2"
			if has && !slices.Contains(got, s) {
				m.t.Fatalf("At of the label %s lacks %s", label, s.key)
			}
		}
		for _, s := range got {
			if !slices.Contains(want, s) {
				m.t.Fatalf("At of the label %s has %s, which was not there", label, s.key)
			}
		}
	}
}

// checkObjects compares a reader of single objects with the model, from a moment on.
func (m *model) checkObjects(r *modelResource, at int64) {
	reader, err := m.disk.Objects(r.res)
	if err != nil {
		m.t.Fatal(err)
	}
	defer reader.Close()
	exact := len(r.gapsBetween(at, at)) == 0
	for _, key := range sortedKeys(r.objects) {
		var got, want []seen
		for c, err := range reader.Changes(key, time.Unix(0, at)) {
			if err != nil {
				m.t.Fatal(err)
			}
			got = append(got, m.seenIn(&c))
		}
		for _, c := range r.objects[key].changes {
			if c.at >= at {
				want = append(want, c.seen)
			}
		}
		compareSeen(m.t, fmt.Sprintf("Changes of %s in %s from %d", key, r.res, at), got, want)
		s, ok, err := reader.At(key, time.Unix(0, at))
		if err != nil {
			m.t.Fatal(err)
		}
		was := r.objects[key].at(at)
		if exact && (ok != (was != nil) || ok && seenOf(m.t, &s) != was.seen) {
			m.t.Fatalf("At %d of %s in %s is %+v, %v, want %+v", at, key, r.res, s, ok, was)
		}
	}
}

func (m *model) seenIn(c *Change) seen {
	if c.Deleted {
		return seen{key: c.Key, version: c.Version, at: nanos(c.Time), deleted: true}
	}
	return seenOf(m.t, &c.State)
}

func (m *model) checkHistory(r *modelResource, from, to int64) {
	for _, f := range []Filter{{}, {Namespace: "ns3"}, {Key: "ns0/object-3"}} {
		var want []seen
		for _, key := range sortedKeys(r.objects) {
			for _, c := range r.objects[key].changes {
				if c.at >= from && c.at <= to && f.match(key) {
					want = append(want, c.seen)
				}
			}
		}
		var got []seen
		for c, err := range m.disk.History(r.res, f, time.Unix(0, from), time.Unix(0, to)) {
			if err != nil {
				m.t.Fatal(err)
			}
			got = append(got, m.seenIn(&c))
		}
		compareSeen(m.t, fmt.Sprintf("History of %s with %+v between %d and %d", r.res, f, from, to), got, want)
	}
	want := r.gapsBetween(from, to)
	got, err := m.disk.Gaps(r.res, time.Unix(0, from), time.Unix(0, to))
	same := func(a, b Gap) bool { return a.From.Equal(b.From) && a.To.Equal(b.To) }
	if err != nil || !slices.EqualFunc(got, want, same) {
		m.t.Fatalf("%s has the gaps %v between %d and %d, want %v: %v", r.res, got, from, to, want, err)
	}
}

func (m *model) statesOf(r *modelResource, at func(*modelObject) *modelChange) (all []seen) {
	for _, key := range sortedKeys(r.objects) {
		if c := at(r.objects[key]); c != nil {
			all = append(all, c.seen)
		}
	}
	return all
}

func sortedKeys(objects map[object.Key]*modelObject) []object.Key {
	keys := make([]object.Key, 0, len(objects))
	for k := range objects {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func mapSeen(all []seen, do func(seen) seen) (out []seen) {
	for _, s := range all {
		out = append(out, do(s))
	}
	return out
}

func filterSeen(all []seen, keep func(seen) bool) (out []seen) {
	for _, s := range all {
		if keep(s) {
			out = append(out, s)
		}
	}
	return out
}

// About 4,500 changes, and 110,000 with MIRADOR_NIGHTLY.
func TestEveryReadEqualsAModel(t *testing.T) {
	for seed := range uint64(number(4, 20)) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { runModel(t, seed, wide, number(80, 400), number(4, 20)) })
	}
}

// 12 seeds, and 100 with MIRADOR_NIGHTLY.
func TestEveryReadEqualsAModelWhereTimesCoincide(t *testing.T) {
	for seed := range uint64(number(12, 100)) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { runModel(t, seed, dense, 80, 4) })
	}
}

// runModel makes random steps, and checks all reads after one in so many of them.
func runModel(t *testing.T, seed uint64, p pace, steps, check int) {
	m := newModel(t, seed, p)
	for i := range steps {
		m.step()
		switch m.r.IntN(m.rare) {
		case 0:
			m.restart()
		case 1:
			m.now = m.now.Add(time.Duration(m.r.IntN(int(120 * m.minute))))
			m.retain()
		case 2:
			m.noRoom = !m.noRoom
		case 3:
			if err := m.disk.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		case 4:
			r := m.resources[3]
			r.id++
			r.opts.Fingerprint = fmt.Sprint(r.id)
			r.begin, r.last, r.reached, r.paused, r.gaps = 0, 0, 0, 0, nil
			clear(r.objects)
			m.reopenResources()
		}
		if i%check == 0 || m.r.IntN(20) == 0 {
			m.check()
		}
	}
	if damage, err := m.disk.Verify(t.Context(), nil); err != nil || len(damage) > 0 {
		t.Fatal(damage, err)
	}
	mustClose(t, m.disk)
}
