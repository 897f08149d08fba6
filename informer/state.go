package informer

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/store"
)

// State is a state that an informer can start from: all objects at one version.
type State[T any] struct {
	Version object.Version
	// LastEvent is when the source last sent anything before the state was saved; see Health.Reflector.LastEvent.
	LastEvent time.Time
	// Items are the objects.
	Items []object.Item[T]
	// Packed, instead of Items, yields the objects of an informer in the packed layout as they were kept outside of the
	// process: nothing is encoded or decoded. It is called once, by Run. After an error, the informer lists.
	Packed iter.Seq2[store.PackedEntry, error]
}

// State returns the current state, for an informer that starts from it later. The informer must be synced.
func (i *Informer[T]) State() (*State[T], error) {
	if !i.HasSynced() {
		return nil, fmt.Errorf("save the state of %s: it has no complete state yet; call WaitSynced first", i.opts.Name)
	}
	i.mu.Lock()
	refl := i.refl
	i.mu.Unlock()
	lastEvent := refl.Health().LastEvent // before the snapshot, which is then at least as new
	snap := i.Snapshot()
	s := &State[T]{Version: snap.Version(), LastEvent: lastEvent, Items: make([]object.Item[T], 0, snap.Len())}
	for e := range snap.Entries() {
		s.Items = append(s.Items, object.Item[T]{Key: e.Key, Version: e.Version, UID: e.UID, Size: e.Size,
			Value: e.Object()})
	}
	return s, nil
}

// check returns an error if an informer of that layout cannot start from the state, which may be nil.
func (s *State[T]) check(layout store.Layout) error {
	switch {
	case s == nil:
		return nil
	case s.Version == "":
		return errors.New("the state to start from has no version; take it from Informer.State or Snapshot.Version")
	case s.Packed != nil && s.Items != nil:
		return errors.New("the state to start from has both Items and Packed; set one of them")
	case s.Packed != nil && layout != store.Packed:
		return fmt.Errorf("the state to start from is packed, and the layout is %v; set Options.Layout to store.Packed",
			layout)
	}
	return nil
}

// load writes the state of Options.StartFrom to the store, as if it were a list, before the reflector starts. If the
// state cannot be used as it is, the reflector lists.
func (i *Informer[T]) load(refl *reflector.Reflector[T]) {
	start := i.start
	if start == nil {
		return
	}
	load := i.loadItems
	if start.Packed != nil {
		load = i.loadPacked
	}
	if err := load(start); err != nil {
		refl.Distrust()
		i.problem("start", "", err)
	}
	i.mu.Lock()
	i.start = nil // the store has it now
	i.mu.Unlock()
}

func (i *Informer[T]) loadItems(start *State[T]) (err error) {
	deltas := make([]object.Delta[T], 0, len(start.Items)+2)
	deltas = append(deltas, object.Delta[T]{Type: object.ReplaceBegin})
	for n := range start.Items {
		it := &start.Items[n]
		if start.Version.Before(it.Version) {
			err = start.mixed(it.Key, it.Version)
		}
		deltas = append(deltas, object.Delta[T]{Type: object.Replaced, Item: *it})
	}
	deltas = append(deltas, object.Delta[T]{Type: object.ReplaceEnd, Item: object.Item[T]{Version: start.Version}})
	transform := i.opts.Transform
	i.opts.Transform = nil // the state was transformed before it was stored the first time
	i.apply(deltas)
	i.opts.Transform = transform
	return err
}

func (i *Informer[T]) loadPacked(start *State[T]) error {
	i.beginWrite()
	defer i.endWrite()
	i.writer.BeginReplace()
	i.batch.replacing = true
	var mixed error
	for e, err := range start.Packed {
		if err == nil {
			err = i.writer.StagePacked(&e)
		}
		if err != nil {
			i.abandon()
			return fmt.Errorf("the state to start from cannot be read, so it is listed again: %w", err)
		}
		if start.Version.Before(e.Version) {
			mixed = start.mixed(e.Key, e.Version)
		}
	}
	i.replaced(&object.Delta[T]{Type: object.ReplaceEnd, Item: object.Item[T]{Version: start.Version}})
	return mixed
}

// mixed returns the error for an object that is newer than the state. A snapshot can contain such objects while changes
// are coalesced, or after the source's history was reset, if an object could not be decoded since and keeps its old
// state. Its version then says nothing about later versions, and only a list can tell what the object's state is.
func (s *State[T]) mixed(key object.Key, version object.Version) error {
	return fmt.Errorf("the state to start from has objects newer than its version %s, such as %s at %s, so it is listed "+
		"again", s.Version, key, version)
}
