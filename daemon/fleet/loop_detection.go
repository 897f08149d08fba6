package fleet

import "net/http"

// fleetHeader is set in every request to a cluster. Its value is the id of the fleet that sends it.
const fleetHeader = "Mirador-Fleet"

// Sent reports whether this fleet sent the request that r is on its arrival: the URL of one of its clusters leads back
// to the program that the fleet is in. A server of all clusters must refuse it. The fleet would mirror its own copies,
// then copies of those, without end.
func (f *Fleet) Sent(r *http.Request) bool { return r.Header.Get(fleetHeader) == f.opts.id }
