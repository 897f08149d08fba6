package disk

import (
	"errors"
	"iter"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// ObjectReader reads the histories of single objects of a resource at one commit. Reading many objects in the order
// of their keys takes much less time than a read of Disk for each. It does not read labels: LabelsUnknown is set. One
// read must have ended before the next one begins.
type ObjectReader struct{ past *past }

// Objects returns a reader of objects. The caller closes it. The error is a NoHistoryError if the resource is kept
// without history.
func (d *Disk) Objects(res Resource) (*ObjectReader, error) {
	v, err := d.view(res)
	if err != nil {
		return nil, err
	}
	if !v.desc.history {
		v.close()
		return nil, &NoHistoryError{res}
	}
	p, err := v.past()
	if err != nil {
		v.close()
		return nil, v.wrap(err)
	}
	return &ObjectReader{p}, nil
}

// Close releases the reader.
func (r *ObjectReader) Close() error {
	defer r.past.close()
	return r.past.wrap(r.past.it.Close())
}

// Changes iterates over the changes of an object from a time on, oldest first. After an error there are no more.
func (r *ObjectReader) Changes(key object.Key, from time.Time) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		p := *r.past
		p.segments = p.segmentsBetween(nanos(from), endOf(time.Time{}))
		err := p.changes(string(key), nanos(from), endOf(time.Time{}), func(key string, rec *record) error {
			s, err := p.bases.state(key, rec)
			s.LabelsUnknown = true
			if err == nil && !yield(Change{State: s, Deleted: rec.flags&flagDeletion != 0}, nil) {
				err = errStop
			}
			return err
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(Change{}, p.wrap(err))
		}
	}
}

// At returns the state of an object at a moment; ok is false if it did not exist. The error is a BeforeHistoryError if
// that is not known.
func (r *ObjectReader) At(key object.Key, t time.Time) (s State, ok bool, err error) {
	p, at := r.past, nanos(t)
	if p.progress.begin == 0 || at < p.progress.begin {
		return s, false, &BeforeHistoryError{p.res, instant(p.progress.begin)}
	}
	err = p.each(at, Filter{Key: key}, func(key string, rec *record, _ bool) (err error) {
		s, err = p.bases.state(key, rec)
		s.LabelsUnknown, ok = true, err == nil
		return err
	})
	return s, ok, p.wrap(err)
}
