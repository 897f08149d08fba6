package identity

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

// adminToken authenticates the administrator. It has the hash of the token, so that comparing takes the same time for
// every token.
type adminToken struct {
	sum atomic.Pointer[[sha256.Size]byte]
}

func (t *adminToken) set(token string) {
	sum := sha256.Sum256([]byte(token))
	t.sum.Store(&sum)
}

// AuthenticateToken accepts the administrator's token.
func (t *adminToken) AuthenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	sum := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(sum[:], t.sum.Load()[:]) != 1 {
		return nil, false, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: AdminUser, Groups: []string{AdminGroup}}}, true, nil
}

// SetToken replaces the administrator's token. An Authenticator that was made without one cannot be given one, and the
// token cannot be removed.
func (a *Authenticator) SetToken(token string) error {
	if token == "" || a.admin.sum.Load() == nil {
		return errors.New("set the token: an authenticator has an administrator's token either always or never")
	}
	a.admin.set(token)
	return nil
}
