package server

import (
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/object"
)

// change is a change of one object, as it is sent to watches. All watches share it and its encodings.
type change struct {
	cluster  string
	key      object.Key
	old, now *fleet.Entry // before and after; nil if the object did not or does not exist
	version  string       // of the object after the change; the daemon's own at /fleet
	order    object.Version

	mu                           sync.Mutex
	frames                       map[frameKind][]byte
	oldSelectable, nowSelectable selectable
}

// size is roughly how much memory the change takes once it is encoded.
func (c *change) size() int { return sizeOf(c.old) + sizeOf(c.now) }

func sizeOf(e *fleet.Entry) int {
	if e == nil {
		return 0
	}
	return e.Size
}

// selectable is an object decoded as far as selectors have needed it so far. All watches of a change share it.
type selectable struct {
	raw    []byte
	served []byte     // as /fleet shows it; nil until a selector needs it
	labels labels.Set // nil until a selector needs them
}

// selectable decodes one of the change's objects for selectors, as /fleet shows it if there is a shape.
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
