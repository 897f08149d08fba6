package server

import (
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mirador-k8s/mirador/daemon/ratelimit"
)

// authenticationFailures logs and counts requests whose credentials are not valid.
type authenticationFailures struct {
	log     *slog.Logger
	counter *prometheus.CounterVec
	limit   *ratelimit.Table
	omitted atomic.Uint64 // since the last line in the log
}

// failuresLogged is how many failures are logged per second.
const failuresLogged = 2

func newAuthenticationFailures() *authenticationFailures {
	return &authenticationFailures{log: slog.New(slog.DiscardHandler),
		limit: ratelimit.NewTable(failuresLogged, failuresLogged),
		counter: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "mirador_authentication_failures_total",
			Help: "Requests with credentials that were not accepted: refused, unavailable (they could not be checked), or " +
				"unchecked (there were too many)."}, []string{"reason"})}
}

var errNotAccepted = errors.New("the credentials are not known")

// add records that the credentials of a request were not accepted. The text of the error, which may be nil, is logged
// without them.
func (f *authenticationFailures) add(r *http.Request, err error) {
	reason := "refused"
	switch {
	case err == nil:
		err = errNotAccepted
	case isTemporary(err):
		reason = "unavailable"
	}
	f.counter.WithLabelValues(reason).Inc()
	if !f.limit.Take("", time.Now()) {
		f.omitted.Add(1)
		return
	}
	f.log.Warn("a request has no valid credentials", "address", ratelimit.Address(r),
		"error", clipReason(withoutCredentials(err.Error(), r)), "omitted", f.omitted.Swap(0))
}

// unchecked records that the credentials of a request were not checked.
func (f *authenticationFailures) unchecked() { f.counter.WithLabelValues("unchecked").Inc() }
