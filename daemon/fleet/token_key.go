package fleet

import "crypto/rand"

// tokenKeyName is the name of the key on disk.
const tokenKeyName = "token key"

// TokenKey is a key for what the daemon gives to its clients and reads again after a restart.
type TokenKey [32]byte

// TokenKey returns a random key that is kept in the data folder; nil if there is no folder, or while the key is not in it.
func (f *Fleet) TokenKey() *TokenKey { return f.tokenKey.Load() }

// loadTokenKey reads the key. It reports whether there is one.
func (f *Fleet) loadTokenKey() (bool, error) {
	b, err := f.opts.Disk.Meta(tokenKeyName)
	if err != nil || len(b) != len(TokenKey{}) {
		return false, err
	}
	f.tokenKey.Store((*TokenKey)(b))
	return true, nil
}

// writeTokenKey makes the key if there is none.
func (w *diskWriter) writeTokenKey() error {
	if w.fleet.TokenKey() != nil {
		return nil
	}
	if loaded, err := w.fleet.loadTokenKey(); loaded || err != nil {
		return err
	}
	key := new(TokenKey)
	rand.Read(key[:]) // never fails
	w.batch.SetMeta(tokenKeyName, key[:])
	w.commits = append(w.commits, func() { w.fleet.tokenKey.Store(key) })
	return nil
}
