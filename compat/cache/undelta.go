package cache

// UndeltaStore hands over the whole state after every change.
type UndeltaStore struct {
	Store
	// PushFunc takes the state; it may be called from several goroutines.
	PushFunc func([]any)
}

var _ Store = &UndeltaStore{}

// NewUndeltaStore makes a store that calls pushFunc after every change.
func NewUndeltaStore(pushFunc func([]any), keyFunc KeyFunc) *UndeltaStore {
	return &UndeltaStore{Store: NewStore(keyFunc), PushFunc: pushFunc}
}

func (u *UndeltaStore) pushed(err error) error {
	if err == nil {
		u.PushFunc(u.List())
	}
	return err
}

// Add stores an object and pushes the state.
func (u *UndeltaStore) Add(obj any) error { return u.pushed(u.Store.Add(obj)) }

// Update stores an object and pushes the state.
func (u *UndeltaStore) Update(obj any) error { return u.pushed(u.Store.Update(obj)) }

// Delete removes an object and pushes the state.
func (u *UndeltaStore) Delete(obj any) error { return u.pushed(u.Store.Delete(obj)) }

// Replace makes list all there is and pushes it.
func (u *UndeltaStore) Replace(list []any, resourceVersion string) error {
	return u.pushed(u.Store.Replace(list, resourceVersion))
}
