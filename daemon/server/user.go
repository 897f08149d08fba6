package server

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/access"
)

// Authenticator finds out which user sends a request.
type Authenticator interface {
	// Authenticate returns the user of a request. ok is false if the request has no valid credentials; err may say why,
	// without naming them. An error with a method Temporary that returns true says that the credentials could not be
	// checked.
	Authenticate(r *http.Request) (u user.Info, ok bool, err error)
}

// Users that need no Authenticator. Both are administrators.
var (
	// localUser is the user of every request if the server requires no credentials.
	localUser = &user.DefaultInfo{Name: "mirador:local", Groups: []string{access.Administrators, user.AllAuthenticated}}
	// tokenUser is the user of requests with Access.Token.
	tokenUser = &user.DefaultInfo{Name: "mirador:token", Groups: []string{access.Administrators, user.AllAuthenticated}}
	// noUser is the user of requests that need no credentials, such as those for the files of the page.
	noUser = &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
)

// userOf returns the user of a request, which the guard has authenticated.
func userOf(r *http.Request) user.Info {
	if rec := recordOf(r); rec != nil && rec.user != nil {
		return rec.user
	}
	return noUser
}
