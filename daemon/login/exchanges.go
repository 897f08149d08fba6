package login

import (
	"net/http"
	"sync"

	"github.com/mirador-k8s/mirador/daemon/ratelimit"
)

const (
	// maxExchanges is how many logins are completed at a time. Each is a request to the issuer.
	maxExchanges = 32
	// maxExchangesOfAddress is how many of them come from one address.
	maxExchangesOfAddress = 8
)

// exchanges bounds how many logins are completed at a time.
type exchanges struct {
	mu        sync.Mutex
	all       int
	byAddress map[string]int
}

// enter returns an error if too many logins are being completed. Otherwise leave must be called at the end.
func (e *exchanges) enter(r *http.Request) (leave func(), err error) {
	address := ratelimit.Address(r)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all >= maxExchanges || e.byAddress[address] >= maxExchangesOfAddress {
		return nil, errBusy
	}
	if e.byAddress == nil {
		e.byAddress = map[string]int{}
	}
	e.all++
	e.byAddress[address]++
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.all--
		if e.byAddress[address]--; e.byAddress[address] == 0 {
			delete(e.byAddress, address)
		}
	}, nil
}
