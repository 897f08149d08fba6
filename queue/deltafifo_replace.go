package queue

import (
	"fmt"

	"github.com/mirador-k8s/mirador/object"
)

// Replace declares that list contains all existing objects. Each of them is queued as
// Replaced (or Resynced, see Options.EmitReplaced); all other queued or known objects are
// queued as Deleted. The version of the list is used only in errors.
func (f *DeltaFIFO[T]) Replace(list []T, version string) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	// Everything that can fail comes first, so that a failure leaves the queue unchanged.
	type named struct {
		key string
		obj T
	}
	items := make([]named, len(list))
	listed := make(map[string]struct{}, len(list))
	for i, obj := range list {
		key, err := f.KeyOf(obj)
		if err != nil {
			return fmt.Errorf("replace by a list of %d at version %q: item %d: %w", len(list), version, i, err)
		}
		if obj, err = f.transform(key, obj); err != nil {
			return fmt.Errorf("replace by a list of %d at version %q: %w", len(list), version, err)
		}
		items[i] = named{key, obj}
		listed[key] = struct{}{}
	}

	var gone []string
	for _, key := range f.order.keys() {
		if _, ok := listed[key]; !ok {
			gone = append(gone, key)
		}
	}
	queuedGone := len(gone) // the rest of gone are keys that only Known has
	inList := len(listed)
	if f.opts.Known != nil {
		for _, key := range f.opts.Known.ListKeys() {
			_, done := listed[key]
			if _, queued := f.waiting[key]; !done && !queued {
				gone = append(gone, key)
				listed[key] = struct{}{} // Known may list a key twice
			}
		}
	}

	kind := object.Resynced
	if f.opts.EmitReplaced {
		kind = object.Replaced
	}
	for _, it := range items {
		f.enqueue(it.key, Delta[T]{kind, it.obj}, false)
	}
	for i, key := range gone {
		var last T
		if i < queuedGone {
			d, _ := f.waiting[key].deltas.Newest()
			last = d.Object
		} else {
			last, _ = f.lookUp(key, "delete it without its last state")
		}
		if f.opts.Tombstone != nil {
			last = f.opts.Tombstone(key, last)
		}
		f.enqueue(key, Delta[T]{object.Deleted, last}, true)
	}
	f.populate(inList + len(gone))
	return nil
}

// Resync queues every known object as Resynced, except those that are queued already,
// because the queued deltas are newer.
func (f *DeltaFIFO[T]) Resync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opts.Known == nil {
		return nil
	}
	for _, listed := range f.opts.Known.ListKeys() {
		obj, ok := f.lookUp(listed, "leave it out of the resync")
		if !ok {
			continue
		}
		key, err := f.KeyOf(obj)
		if err != nil {
			return fmt.Errorf("resync %q: %w", listed, err)
		}
		if _, queued := f.waiting[key]; !queued {
			f.enqueue(key, Delta[T]{object.Resynced, obj}, false)
		}
	}
	return nil
}

// lookUp returns the object of a key that Known has listed. If that fails, it calls OnError
// with an error that includes instead, which describes what the caller does then.
func (f *DeltaFIFO[T]) lookUp(key, instead string) (T, bool) {
	obj, exists, err := f.opts.Known.GetByKey(key)
	if err == nil && exists {
		return obj, true
	}
	if f.opts.OnError != nil {
		if err == nil {
			f.opts.OnError(fmt.Errorf("look up known object %q: listed but not found; %s", key, instead))
		} else {
			f.opts.OnError(fmt.Errorf("look up known object %q: %w; %s", key, err, instead))
		}
	}
	var none T
	return none, false
}
