package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// NoHistoryError says that a resource is kept without history.
type NoHistoryError struct{ Resource Resource }

// Error names the resource.
func (e *NoHistoryError) Error() string {
	return fmt.Sprintf("no history is kept of %s", e.Resource)
}

// BeforeHistoryError says that a moment is before the history of a resource.
type BeforeHistoryError struct {
	Resource Resource
	// Begin is the earliest moment; zero if the resource was never complete.
	Begin time.Time
}

// Error names the earliest moment.
func (e *BeforeHistoryError) Error() string {
	if e.Begin.IsZero() {
		return fmt.Sprintf("the history of %s has not begun", e.Resource)
	}
	return fmt.Sprintf("the history of %s begins at %s", e.Resource, e.Begin.Format(time.RFC3339Nano))
}

// past reads the history of a resource.
type past struct {
	*view
	segments []segment
	it       *pebble.Iterator // over the history
	key      []byte           // scratch
	plain    []byte           // scratch
}

// past returns a reader of the history; the caller closes its iterator.
func (v *view) past() (p *past, err error) {
	p = &past{view: v}
	if p.segments, err = loadSegments(v.snap, v.desc.id); err != nil {
		return nil, err
	}
	prefix := appendData(nil, v.desc.id, kindHistory)
	p.it, err = v.snap.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	return p, err
}

// at returns the newest change of a key up to a time. It may be a deletion.
func (p *past) at(key string, at int64) (r record, found bool, err error) {
	for i := segmentAt(p.segments, at); i >= 0; i-- {
		p.key = appendHistory(p.key[:0], p.desc.id, p.segments[i].number, key, at)
		if !p.it.SeekGE(p.key) {
			if err := p.it.Error(); err != nil {
				return r, false, err
			}
			continue
		}
		if k := p.it.Key(); len(k) != len(p.key) || !bytes.HasPrefix(k, p.key[:len(p.key)-8]) {
			continue
		}
		r, err = p.change()
		return r, err == nil, err
	}
	p.key = append(appendData(p.key[:0], p.desc.id, kindCarried), key...)
	return p.stored(p.key, at)
}

// change returns the change at the iterator.
func (p *past) change() (r record, err error) {
	k := p.it.Key()
	_, at, err := splitHistory(k)
	if err != nil {
		return r, err
	}
	v, err := p.it.ValueAndErr()
	if err != nil {
		return r, err
	}
	if p.seal != nil {
		if p.plain, err = p.seal.open(p.plain[:0], k, v); err != nil {
			return r, err
		}
		v = p.plain
	}
	if r, err = decodeRecord(v); err == nil {
		r.time = at
	}
	return r, err
}

// stored returns the newest or carried state under a key, unless it is newer than a time.
func (p *past) stored(key []byte, at int64) (r record, found bool, err error) {
	v, err := get(p.snap, key)
	if err != nil || v == nil {
		return r, false, err
	}
	if v, err = p.open(nil, key, v); err != nil {
		return r, false, err
	}
	if r, err = decodeRecord(v); err != nil {
		return r, false, err
	}
	return r, r.time <= at, nil
}

// At returns the objects of a moment: of each object the newest state that is not newer. With Filter.Label they are a
// superset of those that had the label, so the caller looks at their labels. The error is a NoHistoryError, or a
// BeforeHistoryError with the earliest moment. A moment in a gap has an answer, and Restored.Gap says so.
func (d *Disk) At(res Resource, t time.Time, f Filter) (r *Restored, err error) {
	v, err := d.view(res)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			v.close()
		}
	}()
	at := nanos(t)
	if !v.desc.history {
		return nil, &NoHistoryError{res}
	}
	if v.progress.begin == 0 || at < v.progress.begin {
		return nil, &BeforeHistoryError{res, instant(v.progress.begin)}
	}
	gap, err := v.gapAt(at)
	if err != nil {
		return nil, v.wrap(err)
	}
	return &Restored{Reached: instant(v.progress.reached), Gap: gap, Settled: instant(min(at, v.progress.settled())),
		view: v, states: v.statesAt(at, f)}, nil
}

// statesAt iterates over the objects of a moment, in the order of their keys.
func (v *view) statesAt(at int64, f Filter) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		if err := v.yieldAt(at, f, yield); err != nil && !errors.Is(err, errStop) {
			yield(State{}, err)
		}
	}
}

func (v *view) yieldAt(at int64, f Filter, yield func(State, error) bool) (err error) {
	labels, err := v.labels()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, labels.it.Close()) }()
	p, err := v.past()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.it.Close()) }()
	return p.each(at, f, func(key string, r *record, newest bool) error {
		s, err := v.bases.state(key, r)
		if err == nil {
			err = labels.add(&s, at, newest)
		}
		if err == nil && !yield(s, nil) {
			err = errStop
		}
		return err
	})
}

// visitor receives the state of an object. newest says that it is still the newest one.
type visitor func(key string, r *record, newest bool) error

// each calls do with the state of each object at a moment, in the order of their keys.
func (p *past) each(at int64, f Filter, do visitor) error {
	keys, ok, err := p.candidates(f)
	if err != nil {
		return err
	}
	if !ok {
		return p.eachOfAll(at, f, do)
	}
	for _, key := range keys {
		r, found, err := p.stored(append(appendData(p.key[:0], p.desc.id, kindState), key...), at)
		switch {
		case err != nil:
		case found:
			err = do(key, &r, true)
		default:
			err = p.visit(key, at, do)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// visit calls do with the state of an object at a moment, as the history has it, unless there was none.
func (p *past) visit(key string, at int64, do visitor) error {
	r, found, err := p.at(key, at)
	if err != nil || !found || r.flags&flagDeletion != 0 {
		return err
	}
	return do(key, &r, false)
}

// eachOfAll is each for all objects, or for those of a namespace.
func (p *past) eachOfAll(at int64, f Filter, do visitor) error {
	deleted, err := p.deletedAfter(at, f)
	if err != nil {
		return err
	}
	var plain []byte
	err = scan(p.snap, namespacePrefix(appendData(nil, p.desc.id, kindState), f.Namespace), func(k, v []byte) error {
		key := string(stateKey(k))
		for len(deleted) > 0 && deleted[0] <= key {
			if deleted[0] < key {
				if err := p.visit(deleted[0], at, do); err != nil {
					return err
				}
			}
			deleted = deleted[1:]
		}
		var err error
		if plain, err = p.open(plain, k, v); err != nil {
			return err
		}
		if changed, _, err := recordTime(plain); err != nil {
			return err
		} else if changed > at {
			return p.visit(key, at, do)
		}
		r, err := decodeRecord(plain)
		if err != nil {
			return err
		}
		return do(key, &r, true)
	})
	for i := 0; err == nil && i < len(deleted); i++ {
		err = p.visit(deleted[i], at, do)
	}
	return err
}

// namespacePrefix appends what the keys of a namespace begin with.
func namespacePrefix(dst []byte, namespace string) []byte {
	if namespace == "" {
		return dst
	}
	return append(append(dst, namespace...), '/')
}

// candidates returns the keys that can match the filter, in order; ok is false if they are not known.
func (v *view) candidates(f Filter) (keys []string, ok bool, err error) {
	if f.Key != "" {
		if f.match(f.Key) {
			keys = []string{string(f.Key)}
		}
		return keys, true, nil
	}
	if f.Label == "" || v.desc.sealed || !v.desc.history {
		return nil, false, nil
	}
	prefix := appendPosting(nil, v.desc.id, f.Label, "")
	err = scan(v.snap, namespacePrefix(prefix[:len(prefix):len(prefix)], f.Namespace), func(k, _ []byte) error {
		keys = append(keys, string(k[len(prefix):]))
		return nil
	})
	return keys, true, err
}

// deletedAfter returns the keys that were deleted after a time, in order.
func (v *view) deletedAfter(at int64, f Filter) (keys []string, err error) {
	all := appendData(nil, v.desc.id, kindDeletion)
	from := binary.BigEndian.AppendUint64(slices.Clone(all), uint64(at)+1)
	namespace := namespacePrefix(nil, f.Namespace)
	err = scanRange(v.snap, from, after(all), func(k, _ []byte) error {
		if len(k) < dataPrefix+8 {
			return errBadKey
		}
		if key := k[dataPrefix+8:]; bytes.HasPrefix(key, namespace) {
			keys = append(keys, string(key))
		}
		return nil
	})
	slices.Sort(keys)
	return slices.Compact(keys), err
}
