package server

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/internal/jsonscan"
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

	mu               sync.Mutex
	frames           map[frameKind][]byte
	oldSeen, nowSeen sight
}

// size is about what the change keeps in memory once it was told.
func (c *change) size() int { return sizeOf(c.old) + sizeOf(c.now) }

func sizeOf(e *fleet.Entry) int {
	if e == nil {
		return 0
	}
	return e.Size
}

// sight is an object made ready to be selected. What one watch with a selector has read of a change is there
// for the others.
type sight struct {
	raw    []byte
	served []byte     // as the view of all clusters shows it; nil where no selector needed that
	labels labels.Set // nil where nobody looked for them
}

// show makes one of the change's objects ready, in the form of the view of all clusters where there is a shape.
func (c *change) show(s *sight, e *fleet.Entry, shape *fleetShape) *sight {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.raw == nil {
		s.raw = fleet.Bytes(e, make([]byte, 0, e.Size))
		if doc := query.NewDoc(s.raw); doc.Err() == nil {
			if s.labels = doc.Labels(); s.labels == nil {
				s.labels = labels.Set{}
			}
		}
	}
	if shape != nil && s.served == nil {
		s.served = appendForFleet(make([]byte, 0, e.Size+256), s.raw, c.cluster, e.Key, string(e.Version), shape)
	}
	return s
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
	if columns || r.own {
		return c.encode(r, what, columns) // once in the life of a watch; or as no other prints it
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
	if what == kwatch.Deleted && r.fleet == nil && string(e.Version) != version {
		r.shown = withVersion(r.shown[:0], fleet.Bytes(e, r.raw[:0]), version)
	} else {
		r.shown = r.show(r.shown[:0], cluster, e, version)
	}
	obj := r.shown
	switch r.form {
	case metadata:
		dst, err = appendPartial(dst, obj)
	case asTable:
		if dst, err = r.tableHead(dst, metav1.ListMeta{ResourceVersion: version}, columns); err == nil {
			dst, err = r.row(dst, cluster, e.Key, obj)
			dst = append(dst, "]}"...)
		}
	default:
		dst = append(dst, obj...)
	}
	return append(dst, "}\n"...), err
}

// withVersion appends an object under another version.
func withVersion(dst, obj []byte, version string) []byte {
	from, to, ok := jsonscan.Member(obj, "metadata")
	if !ok {
		return append(dst, obj...)
	}
	a, b, ok := jsonscan.Member(obj[from:to], "resourceVersion")
	if !ok {
		return append(dst, obj...)
	}
	dst = append(append(dst, obj[:from+a]...), '"')
	return append(append(append(dst, version...), '"'), obj[from+b:]...)
}
