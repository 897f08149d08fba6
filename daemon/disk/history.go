package disk

import (
	"bytes"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// History iterates over the changes of a resource between two times, both included: by key, and oldest first. A zero to
// means until now. What the filter's label selects is a superset: it has all changes of each object that had the label
// at any time. After an error there are no more.
func (d *Disk) History(res Resource, f Filter, from, to time.Time) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		v, err := d.view(res)
		if err != nil {
			yield(Change{}, err)
			return
		}
		defer v.close()
		if !v.desc.history {
			yield(Change{}, &NoHistoryError{res})
			return
		}
		err = v.yieldHistory(f, nanos(from), endOf(to), yield)
		if err != nil && !errors.Is(err, errStop) {
			yield(Change{}, v.wrap(err))
		}
	}
}

func (v *view) yieldHistory(f Filter, from, to int64, yield func(Change, error) bool) (err error) {
	labels, err := v.labels()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, labels.it.Close()) }()
	return v.history(f, from, to, func(key string, r *record) error {
		s, err := v.bases.state(key, r)
		deleted := r.flags&flagDeletion != 0
		if err == nil && !deleted {
			err = labels.add(&s, r.time, r.flags&flagUnrecorded != 0)
		}
		if err == nil && !yield(Change{State: s, Deleted: deleted}, nil) {
			err = errStop
		}
		return err
	})
}

// history calls do with each change between two times.
func (v *view) history(f Filter, from, to int64, do func(key string, r *record) error) (err error) {
	p, err := v.past()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.it.Close()) }()
	p.segments = p.segmentsBetween(from, to)
	keys, ok, err := v.candidates(f)
	if err != nil {
		return err
	}
	if !ok {
		return p.merge(f, func(key string) error {
			if err := f.pace(); err != nil {
				return err
			}
			return p.changes(key, from, to, do)
		})
	}
	for _, key := range keys {
		if err := f.pace(); err != nil {
			return err
		}
		if err := p.changes(key, from, to, do); err != nil {
			return err
		}
	}
	return nil
}

// segmentsBetween returns the segments with the changes between two times.
func (p *past) segmentsBetween(from, to int64) []segment {
	segments := p.segments[:segmentAt(p.segments, to)+1]
	return segments[max(0, segmentAt(segments, from)):]
}

// changes calls do with each change of one key between two times.
func (p *past) changes(key string, from, to int64, do func(key string, r *record) error) error {
	for i := range p.segments {
		p.key = appendHistory(p.key[:0], p.desc.id, p.segments[i].number, key, from-1)
		own := len(p.key) - 8
		for ok := p.it.SeekLT(p.key); ok; ok = p.it.Prev() {
			if k := p.it.Key(); len(k) != len(p.key) || !bytes.HasPrefix(k, p.key[:own]) {
				break
			}
			r, err := p.change()
			if err != nil {
				return err
			}
			if r.time > to {
				break
			}
			if err := do(key, &r); err != nil {
				return err
			}
		}
		if err := p.it.Error(); err != nil {
			return err
		}
	}
	// The newest state may be one that was written while the history was paused.
	p.key = append(appendData(p.key[:0], p.desc.id, kindState), key...)
	r, found, err := p.stored(p.key, to)
	if err != nil || !found || r.time < from || r.flags&flagUnrecorded == 0 {
		return err
	}
	return do(key, &r)
}

// keySource is an iterator over keys that end with those of objects.
type keySource struct {
	it      *pebble.Iterator
	prefix  int // length of what comes before the object's key
	history bool
}

// key returns the object's key.
func (s *keySource) key() []byte {
	k := s.it.Key()[s.prefix:]
	if s.history {
		k = k[:max(0, len(k)-9)]
	}
	return k
}

// merge calls do with each key of the segments and of the newest states, in order.
func (p *past) merge(f Filter, do func(key string) error) (err error) {
	var sources []*keySource
	defer func() {
		for _, s := range sources {
			err = errors.Join(err, s.it.Close())
		}
	}()
	open := func(prefix []byte, history bool) error {
		bound := namespacePrefix(slices.Clone(prefix), f.Namespace)
		it, err := p.snap.NewIter(&pebble.IterOptions{LowerBound: bound, UpperBound: after(bound)})
		if err != nil {
			return err
		}
		sources = append(sources, &keySource{it, len(prefix), history})
		it.First()
		return it.Error()
	}
	for i := range p.segments {
		if err := open(appendSegment(nil, p.desc.id, kindHistory, p.segments[i].number), true); err != nil {
			return err
		}
	}
	if err := open(appendData(nil, p.desc.id, kindState), false); err != nil {
		return err
	}
	var key []byte
	for {
		found := false
		for _, s := range sources {
			if s.it.Valid() {
				if k := s.key(); !found || bytes.Compare(k, key) < 0 {
					found, key = true, append(key[:0], k...)
				}
			}
		}
		if !found {
			return nil
		}
		for _, s := range sources {
			for s.it.Valid() && bytes.Equal(s.key(), key) {
				s.it.Next()
			}
			if err := s.it.Error(); err != nil {
				return err
			}
		}
		if err := do(string(key)); err != nil {
			return err
		}
	}
}
