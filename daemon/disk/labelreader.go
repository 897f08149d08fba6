package disk

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
)

// labelReader finds the labels of newest states.
type labelReader struct {
	seal  *seal
	it    *pebble.Iterator
	key   []byte // scratch; its prefix stays
	plain []byte // scratch
	found bool   // a key was sought before
}

// labels returns a reader of the labels; the caller closes it.
func (v *view) labels() (*labelReader, error) {
	prefix := appendData(nil, v.desc.id, kindLabels)
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return nil, err
	}
	return &labelReader{seal: v.seal, it: it, key: prefix}, nil
}

// stepsBeforeSeek is how many records are passed one by one before the next one is sought.
const stepsBeforeSeek = 4

// of returns the labels of an object and when they became these; at is 0 if it has none. Keys come in ascending order.
func (l *labelReader) of(key string) (at int64, labels []string, err error) {
	l.key = append(l.key[:dataPrefix], key...)
	if !l.found {
		l.found = true
		l.it.SeekGE(l.key)
	}
	for n := 0; l.it.Valid() && bytes.Compare(l.it.Key(), l.key) < 0; n++ {
		if n < stepsBeforeSeek {
			l.it.Next()
		} else {
			l.it.SeekGE(l.key)
		}
	}
	if !l.it.Valid() || !bytes.Equal(l.it.Key(), l.key) {
		return 0, nil, l.it.Error()
	}
	v, err := l.it.ValueAndErr()
	if err == nil && l.seal != nil {
		l.plain, err = l.seal.open(l.plain[:0], l.key, v)
		v = l.plain
	}
	if err != nil {
		return 0, nil, err
	}
	return decodeLabels(v)
}

// add adds the labels to a state that an object had at a time. They are known if they have not changed since.
func (l *labelReader) add(s *State, at int64, newest bool) error {
	since, labels, err := l.of(string(s.Key))
	if newest || since != 0 && since <= at {
		s.Labels = labels
	} else {
		s.LabelsUnknown = true
	}
	return err
}
