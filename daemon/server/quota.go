package server

import (
	"fmt"
	"sync"

	"github.com/mirador-k8s/mirador/daemon/query"
)

// quota divides a total among clients. A client may hold as much as is left for all others: a single client gets half
// of the total, two get a third each, and so on. However many clients there are, something is left for a new one. A
// client that holds nothing yet may take all that is left.
type quota struct {
	what  string // what is divided, for error messages: "bytes of memory"
	total int64

	mu     sync.Mutex
	used   int64
	shares map[clientKey]int64 // of clients that hold something
}

func newQuota(what string, total int64) *quota {
	return &quota{what: what, total: total, shares: map[clientKey]int64{}}
}

// grant is what one request holds of a quota. It must be used by one goroutine at a time.
type grant struct {
	quota  *quota
	client clientKey
	held   int64
}

// open returns an empty grant for a client.
func (q *quota) open(client clientKey) *grant { return &grant{quota: q, client: client} }

// set changes what the grant holds. It fails only when the grant grows: with 429 if the client's share is used up, and
// with query.ErrTooMuch if n is more than any client may hold.
func (g *grant) set(n int64) error {
	if n > g.held && n > max(1, g.quota.total/2) {
		return fmt.Errorf("the request needs %d %s, more than one client may use: %w; narrow it, or ask for pages with a "+
			"limit", n, g.quota.what, query.ErrTooMuch)
	}
	if !g.change(n-g.held, 1) {
		return tooManyRequests(refusedShare, fmt.Sprintf("the requests of this client use their share of %d %s",
			g.quota.total, g.quota.what), 1)
	}
	return nil
}

// tryAdd takes n more if that leaves four times as much for others as the client then holds. It is for memory that
// makes a request faster but is not needed to finish it.
func (g *grant) tryAdd(n int64) bool { return g.change(n, 4) }

// giveBack returns n of what the grant holds.
func (g *grant) giveBack(n int64) { g.change(-n, 1) }

// close returns everything.
func (g *grant) close() { g.giveBack(g.held) }

// change adds n, which may be negative, if the client then holds no more than what is left for others, divided by
// reserve.
func (g *grant) change(n, reserve int64) bool {
	q := g.quota
	q.mu.Lock()
	defer q.mu.Unlock()
	share := q.shares[g.client] + n
	if left := q.total - q.used - n; n > 0 && (left < 0 || share > n && share > left/reserve) {
		return false
	}
	q.used += n
	g.held += n
	if share == 0 {
		delete(q.shares, g.client)
	} else {
		q.shares[g.client] = share
	}
	return true
}

const (
	// requestMemory is how many bytes all requests in progress may hold together: the results of scans, the values that
	// lists are sorted by, and encoded answers that wait for slow clients.
	requestMemory = 256 << 20
	// scanStep is how many bytes a scan takes at a time.
	scanStep = 256 << 10
)
