package server

import (
	"container/list"
	"sync"
	"time"
)

// maxRates is how many clients a rateTable holds. Beyond that, the client with the oldest last request is evicted.
const maxRates = 4096

// rateTable is a token bucket for each client: it limits the requests per second, with a burst of one second's worth.
type rateTable struct {
	perSecond float64

	mu     sync.Mutex
	byKey  map[clientKey]*list.Element
	recent *list.List // of *rate, the most recent client first
}

// rate is the token bucket of one client.
type rate struct {
	key  clientKey
	left float64
	at   time.Time
}

func newRateTable(perSecond int) *rateTable {
	return &rateTable{perSecond: float64(perSecond), byKey: map[clientKey]*list.Element{}, recent: list.New()}
}

// giveBack returns one request to a client.
func (t *rateTable) giveBack(key clientKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if el := t.byKey[key]; el != nil {
		r := el.Value.(*rate)
		r.left = min(t.perSecond, r.left+1)
	}
}

// take reports whether a client may send a request now.
func (t *rateTable) take(key clientKey, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	el := t.byKey[key]
	if el == nil {
		el = t.recent.PushFront(&rate{key: key, left: t.perSecond, at: now})
		t.byKey[key] = el
		if t.recent.Len() > maxRates {
			delete(t.byKey, t.recent.Remove(t.recent.Back()).(*rate).key)
		}
	} else {
		t.recent.MoveToFront(el)
	}
	r := el.Value.(*rate)
	r.left = min(t.perSecond, r.left+now.Sub(r.at).Seconds()*t.perSecond)
	r.at = now
	if r.left < 1 {
		return false
	}
	r.left--
	return true
}
