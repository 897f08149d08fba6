package server

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/ratelimit"
)

// clientKey identifies the client that a request is charged to. Limits are per client, so that one client cannot use
// up the share of another.
type clientKey string

// clientOf returns the client of a request.
func clientOf(r *http.Request) clientKey {
	if rec := recordOf(r); rec != nil && rec.actor != nil {
		return clientOfUser(rec.actor, r) // it pays for the requests that it sends as other users
	}
	return clientOfUser(userOf(r), r)
}

// clientOfUser returns the client of a request of a user: the user, wherever its requests come from. Users that stand
// for many people, such as that of the token, are a client at each address.
func clientOfUser(u user.Info, r *http.Request) clientKey {
	if u == localUser || u == tokenUser || u == noUser {
		return clientKey(u.GetName() + "@" + ratelimit.Address(r))
	}
	return clientKey(u.GetName())
}
