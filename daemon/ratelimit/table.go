package ratelimit

import (
	"container/list"
	"sync"
	"time"
)

// maxRates is how many clients a Table holds. Beyond that, the client with the oldest last request is evicted.
const maxRates = 4096

// Table is a token bucket for each client: it limits the requests per second, with a burst. Its methods may be called
// concurrently.
type Table struct {
	perSecond, burst float64

	mu     sync.Mutex
	byKey  map[string]*list.Element
	recent *list.List // of *rate, the most recent client first
}

// rate is the token bucket of one client.
type rate struct {
	key  string
	left float64
	at   time.Time
}

// NewTable returns a Table.
func NewTable(perSecond, burst int) *Table {
	return &Table{perSecond: float64(perSecond), burst: float64(burst), byKey: map[string]*list.Element{},
		recent: list.New()}
}

// GiveBack returns one request to a client.
func (t *Table) GiveBack(client string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if el := t.byKey[client]; el != nil {
		r := el.Value.(*rate)
		r.left = min(t.burst, r.left+1)
	}
}

// Take reports whether a client may send a request now.
func (t *Table) Take(client string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	el := t.byKey[client]
	if el == nil {
		el = t.recent.PushFront(&rate{key: client, left: t.burst, at: now})
		t.byKey[client] = el
		if t.recent.Len() > maxRates {
			delete(t.byKey, t.recent.Remove(t.recent.Back()).(*rate).key)
		}
	} else {
		t.recent.MoveToFront(el)
	}
	r := el.Value.(*rate)
	r.left = min(t.burst, r.left+now.Sub(r.at).Seconds()*t.perSecond)
	r.at = now
	if r.left < 1 {
		return false
	}
	r.left--
	return true
}
