package cache

import (
	"errors"
	"fmt"

	"k8s.io/klog/v2"
)

// applier applies deltas to a store and then calls a handler.
type applier struct {
	logger  klog.Logger
	store   Store
	handler ResourceEventHandler
	key     KeyFunc
}

// process applies an item that was popped.
func (a applier) process(item any, isInInitialList bool) error {
	deltas, ok := item.(Deltas)
	if !ok {
		return fmt.Errorf("the popped item is a %T; a controller processes Deltas", item)
	}
	for _, d := range deltas {
		if err := a.delta(d, isInInitialList); err != nil {
			return err
		}
	}
	return nil
}

func (a applier) delta(d Delta, isInInitialList bool) error {
	switch d.Type {
	case Added, Updated, Replaced, Sync:
		old, exists, err := a.store.Get(d.Object)
		if err == nil && exists {
			if err := a.store.Update(d.Object); err != nil {
				return err
			}
			a.handler.OnUpdate(old, d.Object)
			return nil
		}
		if err := a.store.Add(d.Object); err != nil {
			return err
		}
		a.handler.OnAdd(d.Object, isInInitialList)
	case Deleted:
		if err := a.store.Delete(d.Object); err != nil {
			return err
		}
		a.handler.OnDelete(d.Object)
	case ReplacedAll:
		info, ok := d.Object.(ReplacedAllInfo)
		if !ok {
			return fmt.Errorf("the object of a %s delta is a %T", d.Type, d.Object)
		}
		return a.replace(info, isInInitialList)
	case SyncAll:
		for _, obj := range a.store.List() {
			a.handler.OnUpdate(obj, obj)
		}
	case Bookmark:
		info, ok := d.Object.(BookmarkInfo)
		if !ok {
			return fmt.Errorf("the object of a %s delta is a %T", d.Type, d.Object)
		}
		a.store.Bookmark(info.ResourceVersion)
	default:
		return fmt.Errorf("unknown type %q of a delta", d.Type)
	}
	return nil
}

// replace replaces the contents of the store by a list, then calls the handler for the
// deletions, and then for the listed objects in the order of the list.
func (a applier) replace(info ReplacedAllInfo, isInInitialList bool) error {
	listed := make(map[string]bool, len(info.Objects))
	olds := make([]any, len(info.Objects))
	for i, obj := range info.Objects {
		key, err := a.key(obj)
		if err != nil {
			return KeyError{Obj: obj, Err: err}
		}
		listed[key] = true
		if old, exists, err := a.store.GetByKey(key); err == nil && exists {
			olds[i] = old
		}
	}
	var deleted []DeletedFinalStateUnknown
	for _, key := range a.store.ListKeys() {
		if !listed[key] {
			deleted = append(deleted, DeletedFinalStateUnknown{Key: key, Obj: lastKnown(a.logger, a.store, key)})
		}
	}
	if err := a.store.Replace(info.Objects, info.ResourceVersion); err != nil {
		return err
	}
	for _, d := range deleted {
		a.handler.OnDelete(d)
	}
	for i, obj := range info.Objects {
		if olds[i] != nil {
			a.handler.OnUpdate(olds[i], obj)
		} else {
			a.handler.OnAdd(obj, isInInitialList)
		}
	}
	return nil
}

// processBatch applies deltas of different objects in one transaction, then calls the
// handler for those that the store accepted.
func (a applier) processBatch(deltas []Delta, isInInitialList bool) error {
	txn, ok := a.store.(TransactionStore)
	if !ok {
		var errs []error
		for _, d := range deltas {
			errs = append(errs, a.delta(d, isInInitialList))
		}
		return errors.Join(errs...)
	}
	writes := make([]Transaction, len(deltas))
	olds := make([]any, len(deltas))
	for i, d := range deltas {
		writes[i] = Transaction{Object: d.Object, Type: TransactionTypeAdd}
		if d.Type == Deleted {
			writes[i].Type = TransactionTypeDelete
			continue
		}
		if old, exists, err := a.store.Get(d.Object); err == nil && exists {
			writes[i].Type, olds[i] = TransactionTypeUpdate, old
		}
	}
	notify := func(i int) {
		switch writes[i].Type {
		case TransactionTypeAdd:
			a.handler.OnAdd(deltas[i].Object, isInInitialList)
		case TransactionTypeUpdate:
			a.handler.OnUpdate(olds[i], deltas[i].Object)
		case TransactionTypeDelete:
			a.handler.OnDelete(deltas[i].Object)
		}
	}
	if failed := txn.Transaction(writes...); failed != nil {
		for _, i := range failed.SuccessfulIndices {
			notify(i)
		}
		return failed
	}
	for i := range writes {
		notify(i)
	}
	return nil
}
