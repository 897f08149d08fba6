package cache

// UndeltaStore is a Store that calls PushFunc with all objects after every change.
type UndeltaStore struct {
	Store
	// PushFunc receives all objects. It may be called from several goroutines.
	PushFunc func([]any)
}

var _ Store = &UndeltaStore{}

// NewUndeltaStore returns a store that calls pushFunc after every change.
func NewUndeltaStore(pushFunc func([]any), keyFunc KeyFunc) *UndeltaStore {
	return &UndeltaStore{Store: NewStore(keyFunc), PushFunc: pushFunc}
}

func (u *UndeltaStore) pushed(err error) error {
	if err == nil {
		u.PushFunc(u.List())
	}
	return err
}

// Add stores an object and calls PushFunc.
func (u *UndeltaStore) Add(obj any) error { return u.pushed(u.Store.Add(obj)) }

// Update stores an object and calls PushFunc.
func (u *UndeltaStore) Update(obj any) error { return u.pushed(u.Store.Update(obj)) }

// Delete removes an object and calls PushFunc.
func (u *UndeltaStore) Delete(obj any) error { return u.pushed(u.Store.Delete(obj)) }

// Replace replaces all objects by those of list and calls PushFunc.
func (u *UndeltaStore) Replace(list []any, resourceVersion string) error {
	return u.pushed(u.Store.Replace(list, resourceVersion))
}
