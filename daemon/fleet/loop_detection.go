package fleet

import "net/http"

// fleetHeader is set in every request to a cluster. Its value is the id of the sending fleet.
const fleetHeader = "Mirador-Fleet"

// Sent reports whether this fleet sent the request, because the URL of one of its clusters leads back to this program.
// A server of all clusters must refuse such a request: otherwise the fleet would mirror copies of its own copies
// without end.
func (f *Fleet) Sent(r *http.Request) bool { return r.Header.Get(fleetHeader) == f.opts.id }
