package server

import (
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
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

	mu                           sync.Mutex
	frames                       map[frameKind][]byte
	oldSelectable, nowSelectable selectable
}

// size is about what the change keeps in memory once it was told.
func (c *change) size() int { return sizeOf(c.old) + sizeOf(c.now) }

func sizeOf(e *fleet.Entry) int {
	if e == nil {
		return 0
	}
	return e.Size
}

// selectable is an object made ready to be selected. What one watch with a selector has read of a change is there
// for the others.
type selectable struct {
	raw    []byte
	served []byte     // as the view of all clusters shows it; nil where no selector needed that
	labels labels.Set // nil where nobody looked for them
}

// show makes one of the change's objects ready, in the form of the view of all clusters where there is a shape.
func (c *change) selectable(s *selectable, e *fleet.Entry, shape *fleetShape) *selectable {
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
