package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// A workload makes random batches of changes, and keeps what the folder has after each, so that a test knows what can
// be there after a crash or a failure.
type workload struct {
	t       testing.TB
	r       *rand.Rand
	now     time.Time
	opts    Options
	disk    *Disk
	mirrors []*mirror
	version int
	// newest has, for each batch, the newest states after it; changes all changes up to then.
	newest  []string
	changes [][]loggedChange
}

// loggedChange is one change as History gives it.
type loggedChange struct {
	resource int
	key      object.Key
	at       int64
	deleted  bool
	text     string
}

// workloadKinds are how the resources of a workload are kept.
var workloadKinds = []ResourceOptions{{History: true}, {History: true, Sealed: true}}

// crashTune makes pebble flush, compact and begin other files all the time.
func crashTune(s *engineSizes) {
	smallEngine(s)
	s.memtable = 32 << 10
}

// newWorkload opens the folder and stores the first state. Its batches begin at number 0.
func newWorkload(t testing.TB, seed uint64, o Options) (*workload, error) {
	w := &workload{t: t, r: rand.New(rand.NewPCG(seed, 3)), now: start, opts: o}
	w.opts.Key = []byte("0123456789abcdef0123456789abcdef")
	w.opts.now = func() time.Time { return w.now }
	for i := range workloadKinds {
		w.mirrors = append(w.mirrors, newMirror(t, Resource{fmt.Sprint("cluster", i), "", "v1", "things"}))
	}
	var err error
	if w.disk, err = Open("data", w.opts); err != nil {
		return nil, err
	}
	return w, nil
}

// opens adds to the batch how the resources are kept.
func (w *workload) opens(b *Batch) {
	for i, m := range w.mirrors {
		b.SetCluster(m.res.Cluster, "uid")
		if err := b.Open(m.res, workloadKinds[i]); err != nil {
			w.t.Fatal(err)
		}
	}
}

// batch returns a batch of random changes.
func (w *workload) batch() *Batch {
	w.now = w.now.Add(time.Duration(1+w.r.IntN(60)) * time.Second)
	b := w.disk.NewBatch()
	if w.version == 0 {
		w.opens(b)
	}
	for i, m := range w.mirrors {
		for range 1 + w.r.IntN(8) {
			w.version++
			key := object.NewKey("shop", fmt.Sprint("object-", w.r.IntN(25)))
			if w.r.IntN(6) == 0 {
				b.Delete(m.res, key, object.Version(fmt.Sprint(w.version)), w.now)
				continue
			}
			detail := fmt.Sprintf("%x", w.r.Perm(4+w.r.IntN(200)))
			json := jsonOf(key, w.r.IntN(3), w.version, detail)
			b.Put(m.res, m.state(w.t, key, w.version, w.now, json, fmt.Sprint("app=", w.r.IntN(3))))
		}
		b.Reach(m.res, object.Version(fmt.Sprint(w.version)), w.now)
		if w.r.IntN(20) == 0 {
			b.Gap(m.res, w.now, w.now.Add(time.Second))
			w.now = w.now.Add(time.Second)
		}
		b.SetDocument(m.res.Cluster, "discovery", fmt.Appendf(nil, "document %d %d", i, w.version))
	}
	b.SetMeta("sequence", fmt.Append(nil, w.version))
	return b
}

// note keeps what the folder has now as the state after one more batch.
func (w *workload) note() {
	w.t.Helper()
	if err := w.tryNote(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workload) tryNote() error {
	newest, err := newestOf(w.disk, w.mirrors)
	if err != nil {
		return err
	}
	var changes []loggedChange
	last := int64(0)
	if n := len(w.changes); n > 0 && len(w.changes[n-1]) > 0 {
		changes = slices.Clip(w.changes[n-1])
		last = changes[len(changes)-1].at
	}
	fresh, err := changesOf(w.disk, w.mirrors, last+1)
	if err != nil {
		return err
	}
	slices.SortStableFunc(fresh, func(a, b loggedChange) int { return int(a.at - b.at) })
	w.newest, w.changes = append(w.newest, newest), append(w.changes, append(changes, fresh...))
	return nil
}

// newestOf returns everything that is the newest of its kind.
func newestOf(d *Disk, mirrors []*mirror) (string, error) {
	var b strings.Builder
	meta, err := d.Meta("sequence")
	fmt.Fprintf(&b, "sequence %s\n", meta)
	for _, m := range mirrors {
		document, docErr := d.Document(m.res.Cluster, "discovery")
		fmt.Fprintf(&b, "%s %s\n", m.res, document)
		err = errors.Join(err, docErr)
		r, restoreErr := d.Restore(m.res)
		if errors.As(restoreErr, new(*UnknownError)) {
			fmt.Fprintln(&b, "nothing")
			continue
		}
		if restoreErr != nil {
			return "", errors.Join(err, restoreErr)
		}
		fmt.Fprintln(&b, r.Version, r.Reached.UnixNano())
		for s, stateErr := range r.States() {
			if stateErr != nil {
				return "", errors.Join(err, stateErr)
			}
			fmt.Fprintln(&b, s.Time.UnixNano(), textOf(&s))
		}
	}
	return b.String(), err
}

// changesOf returns all changes from a time on.
func changesOf(d *Disk, mirrors []*mirror, from int64) (all []loggedChange, err error) {
	for i, m := range mirrors {
		for c, err := range d.History(m.res, Filter{}, instant(from), time.Time{}) {
			if errors.As(err, new(*UnknownError)) {
				break
			}
			if err != nil {
				return nil, err
			}
			l := loggedChange{resource: i, key: c.Key, at: c.Time.UnixNano(), deleted: c.Deleted}
			if !c.Deleted {
				if _, err := c.AppendJSON(nil); err != nil {
					return nil, err
				}
				c.Labels = nil
				l.text = textOf(&c.State)
			}
			all = append(all, l)
		}
	}
	return all, nil
}

// isOneOf reports whether the folder has the state after one of the batches from first to last; -1 stands for an empty
// folder. It returns the batch, and checks that the history fits it.
func (w *workload) isOneOf(d *Disk, first, last int) (int, error) {
	got, err := newestOf(d, w.mirrors)
	if err != nil {
		return 0, err
	}
	empty := true
	for _, m := range w.mirrors {
		r, err := d.Restore(m.res)
		if err == nil {
			r.Close()
		}
		empty = empty && errors.As(err, new(*UnknownError))
	}
	if empty && first < 0 {
		return -1, nil
	}
	n := last
	for ; n >= max(first, 0) && w.newest[n] != got; n-- {
	}
	if n < max(first, 0) {
		if older := slices.Index(w.newest, got); older >= 0 {
			return 0, fmt.Errorf("it has the state after batch %d, want one of %d to %d", older, first, last)
		}
		return 0, fmt.Errorf("it has a state that never was; want one of %d to %d; it is %.600s", first, last, got)
	}
	return n, w.checkPast(d, n)
}

// checkPast compares the history and some moments with the changes up to a batch.
func (w *workload) checkPast(d *Disk, batch int) error {
	for i, m := range w.mirrors {
		begin, err := d.Begin(m.res)
		if err != nil {
			return err
		}
		var want, got []loggedChange
		for _, c := range w.changes[batch] {
			if c.resource == i && c.at >= begin.UnixNano() {
				want = append(want, c)
			}
		}
		if got, err = changesOf(d, []*mirror{m}, begin.UnixNano()); err != nil {
			return err
		}
		for n := range got {
			got[n].resource = i
		}
		slices.SortStableFunc(got, func(a, b loggedChange) int { return int(a.at - b.at) })
		if !slices.Equal(got, want) {
			return fmt.Errorf("the history of %s has %d changes after batch %d, want %d", m.res, len(got), batch, len(want))
		}
		for range 2 {
			at := begin.UnixNano() + w.r.Int64N(max(1, w.now.UnixNano()-begin.UnixNano()))
			if err := w.checkMoment(d, i, at, w.changes[batch]); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkMoment compares one moment of a resource with all changes, also those that the history does not have any more.
func (w *workload) checkMoment(d *Disk, resource int, at int64, changes []loggedChange) error {
	want := map[object.Key]string{}
	for _, c := range changes {
		switch {
		case c.resource != resource || c.at > at:
		case c.deleted:
			delete(want, c.key)
		default:
			want[c.key] = c.text
		}
	}
	r, err := d.At(w.mirrors[resource].res, instant(at), Filter{})
	if err != nil {
		return err
	}
	for s, err := range r.States() {
		if err != nil {
			return err
		}
		if s.Labels = nil; want[s.Key] != textOf(&s) {
			return fmt.Errorf("at %d, %s is %s, want %s", at, s.Key, textOf(&s), want[s.Key])
		}
		delete(want, s.Key)
	}
	if len(want) > 0 {
		return fmt.Errorf("at %d, %d objects are missing", at, len(want))
	}
	return nil
}
