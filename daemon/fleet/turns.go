package fleet

import (
	"context"
	"sync"
	"time"
)

// At the start of a large fleet, only so many requests that cost a cluster or the daemon much are sent at once. A request
// that takes longer than slowList or slowDiscovery does not count any more, so that clusters that do not answer delay
// no other.
const (
	listsOfFleet       = 32
	listsOfCluster     = 8
	slowList           = 5 * time.Second
	discoveriesOfFleet = 16
	slowDiscovery      = time.Second
)

// turns bounds the number of requests at once. parent, if it is not nil, bounds those of several turns together.
type turns struct {
	slots  chan struct{}
	slow   time.Duration
	parent *turns
}

func newTurns(n int, slow time.Duration, parent *turns) *turns {
	return &turns{make(chan struct{}, n), slow, parent}
}

// admit waits for a turn. The caller calls end when the request has ended.
func (t *turns) admit(ctx context.Context) (end func(), err error) {
	select {
	case t.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	endParent := func() {}
	if t.parent != nil {
		if endParent, err = t.parent.admit(ctx); err != nil {
			<-t.slots
			return nil, err
		}
	}
	once := sync.OnceFunc(func() { <-t.slots })
	timer := time.AfterFunc(t.slow, once)
	return func() {
		timer.Stop()
		once()
		endParent()
	}, nil
}
