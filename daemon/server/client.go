package server

import (
	"net"
	"net/http"
	"net/netip"

	"k8s.io/apiserver/pkg/authentication/user"
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
		return clientKey(u.GetName() + "@" + remoteAddress(r))
	}
	return clientKey(u.GetName())
}

// remoteAddress returns the address of the other end of a request's connection, without the port. An IPv6 address is
// cut to its /64 prefix: a single host owns at least that much and could use a new address for each request.
func remoteAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap().WithZone(""); ip.Is6() && !ip.IsLoopback() {
		if prefix, err := ip.Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return ip.String()
}
