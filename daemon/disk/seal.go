package disk

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
)

// A seal encrypts the values of one resource: AES-256-GCM under a key that is derived from Options.Key and the
// resource's salt, with a random nonce for each value. A value only opens under the key that it was stored under.
type seal struct{ aead cipher.AEAD }

// errOtherKey and errNoKey say why a sealed resource cannot be opened.
var (
	errOtherKey = errors.New("it was sealed with another key; give that key, or drop the cluster")
	errNoKey    = errors.New("it is sealed and there is no key; give the key file that it was written with")
)

// CheckKey returns an error if a sealed resource was written with another key. Without a key, or if the descriptions
// of the resources cannot be read, it returns nil.
func (d *Disk) CheckKey() error {
	if d.opts.Key == nil {
		return nil
	}
	snap, done, err := d.snapshot()
	if err != nil {
		return nil
	}
	defer done()
	var other error
	_ = eachResource(snap, func(res Resource, desc *descriptor) error {
		if _, err := newSeal(d.opts.Key, desc); errors.Is(err, errOtherKey) {
			other = fmt.Errorf("the data folder %s: %s: %w", d.dir, res, err)
		}
		return nil
	})
	return other
}

const saltSize = 16

// newSeal derives the seal of a resource. It returns nil if the resource is not sealed.
func newSeal(key []byte, d *descriptor) (*seal, error) {
	if !d.sealed {
		return nil, nil
	}
	if key == nil {
		return nil, errNoKey
	}
	own, err := hkdf.Key(sha256.New, key, d.salt, "mirador sealed resource", 32)
	if err != nil {
		return nil, fmt.Errorf("derive the resource's key: %w", err)
	}
	block, err := aes.NewCipher(own)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	s := &seal{aead}
	if d.check != nil {
		if _, err := s.open(nil, nil, d.check); err != nil {
			return nil, errOtherKey
		}
	}
	return s, nil
}

// sealNew gives a new resource a salt and a check.
func sealNew(key []byte, d *descriptor) (*seal, error) {
	if !d.sealed {
		return nil, nil
	}
	d.salt = make([]byte, saltSize)
	rand.Read(d.salt)
	s, err := newSeal(key, d)
	if err != nil {
		return nil, err
	}
	d.check = s.seal(nil, nil, nil)
	return s, nil
}

// seal appends the encrypted value that is stored under key. A nil seal appends the value.
func (s *seal) seal(dst, key, value []byte) []byte {
	if s == nil {
		return append(dst, value...)
	}
	n := len(dst)
	dst = append(dst, make([]byte, s.aead.NonceSize())...)
	nonce := dst[n:]
	rand.Read(nonce)
	return s.aead.Seal(dst, nonce, value, key)
}

// open appends the decrypted value. A nil seal returns the stored value itself.
func (s *seal) open(dst, key, stored []byte) ([]byte, error) {
	if s == nil {
		return stored, nil
	}
	n := s.aead.NonceSize()
	if len(stored) < n {
		return nil, errBadRecord
	}
	value, err := s.aead.Open(dst, stored[:n], stored[n:], key)
	if err != nil {
		return nil, errBadRecord
	}
	return value, nil
}
