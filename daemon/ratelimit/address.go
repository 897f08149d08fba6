package ratelimit

import (
	"net"
	"net/http"
	"net/netip"
)

// Address returns the address of the other end of a request's connection, without the port. An IPv6 address is cut to
// its /64 prefix: a single host owns at least that much and could use a new address for each request.
func Address(r *http.Request) string {
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
