package server

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/fleet"
	"github.com/mirador-k8s/mirador/object"
)

// change is what happened to one object, as watches are told of it. All watches share it, and what
// was encoded for one is there for the others.
type change struct {
	cluster  string
	key      object.Key
	old, now *fleet.Entry // before and after; nil where it was not, or is not, there
	version  string       // at which it happened; of the daemon's own order in the view of all clusters
	order    object.Version

	mu     sync.Mutex
	frames map[frameKind][]byte
}

// frameKind is one way of telling a change.
type frameKind struct {
	what    kwatch.EventType
	form    form
	include metav1.IncludeObjectPolicy
}

// frame gives the line of a watch that tells of the change.
func (c *change) frame(r *renderer, what kwatch.EventType, columns bool) ([]byte, error) {
	kind := frameKind{what, r.form, r.include}
	if columns {
		return c.encode(r, what, true) // once in the life of a watch
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.frames[kind]; b != nil {
		return b, nil
	}
	b, err := c.encode(r, what, false)
	if err != nil {
		return nil, err
	}
	if c.frames == nil {
		c.frames = make(map[frameKind][]byte, 1)
	}
	c.frames[kind] = b
	return b, nil
}

func (c *change) encode(r *renderer, what kwatch.EventType, columns bool) ([]byte, error) {
	e := c.now
	if what == kwatch.Deleted && c.old != nil {
		e = c.old // an object that leaves a selection is shown as it was within it
	}
	return encodeFrame(r, what, c.cluster, e, c.version, columns)
}

// encodeFrame makes one line of a watch. A version other than the object's own is that of its end.
func encodeFrame(r *renderer, what kwatch.EventType, cluster string, e *fleet.Entry, version string, columns bool) (_ []byte, err error) {
	dst := append(append([]byte(`{"type":"`), what...), `","object":`...)
	if what == kwatch.Deleted && !r.fleet && string(e.Version) != version {
		r.shown = withVersion(r.shown[:0], fleet.Bytes(e, r.raw[:0]), version)
	} else {
		r.shown = append(r.shown[:0], r.bytes(cluster, e, version)...)
	}
	obj := r.shown
	switch r.form {
	case metadata:
		dst, err = appendPartial(dst, obj)
	case asTable:
		if dst, err = r.tableHead(dst, metav1.ListMeta{ResourceVersion: version}, columns); err == nil {
			dst, err = r.row(dst, cluster, obj)
			dst = append(dst, "]}"...)
		}
	default:
		dst = append(dst, obj...)
	}
	return append(dst, "}\n"...), err
}

// withVersion appends an object under another version.
func withVersion(dst, obj []byte, version string) []byte {
	from, to, ok := member(obj, "metadata")
	if !ok {
		return append(dst, obj...)
	}
	a, b, ok := member(obj[from:to], "resourceVersion")
	if !ok {
		return append(dst, obj...)
	}
	dst = append(append(dst, obj[:from+a]...), '"')
	return append(append(append(dst, version...), '"'), obj[from+b:]...)
}
