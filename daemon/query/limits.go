package query

import (
	"context"
	"fmt"
	"time"
)

// limits bound the work of one request. 0 means the default, a negative number no limit.
type limits struct {
	// maxTime is how long a request may take; by default 30 seconds.
	maxTime time.Duration
	// maxScanned is how many objects a request may examine; by default 2,000,000.
	maxScanned int
	// maxResults is how many objects an answer, or a list that has to be sorted, may have; by default 500,000.
	maxResults int
	// maxBytes is the total size that the objects of an answer may have; by default 4 GiB. The values that a list is
	// sorted by may take a sixteenth of that.
	maxBytes int64
}

const (
	defaultMaxTime    = 30 * time.Second
	defaultMaxScanned = 2_000_000
	defaultMaxResults = 500_000
	defaultMaxBytes   = 4 << 30
)

func (l limits) withDefaults() limits {
	if l.maxTime == 0 {
		l.maxTime = defaultMaxTime
	}
	if l.maxScanned == 0 {
		l.maxScanned = defaultMaxScanned
	}
	if l.maxResults == 0 {
		l.maxResults = defaultMaxResults
	}
	if l.maxBytes == 0 {
		l.maxBytes = defaultMaxBytes
	}
	return l
}

// How often the context is checked and Request.Pace is called: after so many objects, or comparisons while sorting.
const (
	contextEvery = 256
	paceEvery    = 16
	pacedCompare = 1024
)

// The memory that a result takes besides the snapshot: its place in a growing slice, and each value it is sorted by.
const (
	resultBytes = 64
	rankBytes   = 64
)

// budget is what one request has used of its limits.
type budget struct {
	limits
	ctx      context.Context
	resource string
	scanned  int
	results  int
	bytes    int64
	ranking  int64 // bytes of text that the list is sorted by
	ranks    int64 // values that it is sorted by
	pacing   func(held int64) error
}

// pace calls Request.Pace.
func (b *budget) pace() error {
	if b.pacing == nil {
		return nil
	}
	return b.pacing(int64(b.results)*resultBytes + b.ranks*rankBytes + b.ranking)
}

// within returns a context that ends after maxTime.
func (l limits) within(ctx context.Context, resource string) (context.Context, context.CancelFunc) {
	if l.maxTime < 0 {
		return ctx, func() {}
	}
	cause := fmt.Errorf("list %s: it takes longer than %v: %w; narrow it by namespace, labels or cluster", resource,
		l.maxTime, ErrTooMuch)
	return context.WithTimeoutCause(ctx, l.maxTime, cause)
}

// scan counts an object that is examined.
func (b *budget) scan() error {
	if b.scanned%contextEvery == 0 && b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	if b.scanned%paceEvery == paceEvery-1 {
		if err := b.pace(); err != nil {
			return err
		}
	}
	if b.scanned++; b.maxScanned >= 0 && b.scanned > b.maxScanned {
		return fmt.Errorf("list %s: more than %d objects would have to be read: %w; narrow it by namespace or cluster",
			b.resource, b.maxScanned, ErrTooMuch)
	}
	return nil
}

// result counts an object of the answer, or of the list that is sorted for it.
func (b *budget) result() error {
	if b.results++; b.maxResults >= 0 && b.results > b.maxResults {
		return fmt.Errorf("list %s: there are more than %d results: %w; narrow it, or ask for pages in the order of "+
			"the keys", b.resource, b.maxResults, ErrTooMuch)
	}
	return nil
}

// answer counts the size of an object of the answer.
func (b *budget) answer(size int) error {
	if b.bytes += int64(size); b.maxBytes >= 0 && b.bytes > b.maxBytes {
		return fmt.Errorf("list %s: the answer has more than %d bytes: %w; ask for pages with a limit", b.resource,
			b.maxBytes, ErrTooMuch)
	}
	return nil
}

// rank counts the values that an object is sorted by.
func (b *budget) rank(values []orderValue) error {
	b.ranks += int64(len(values))
	for i := range values {
		b.ranking += int64(len(values[i].text))
	}
	if b.maxBytes >= 0 && b.ranking > b.maxBytes/16 {
		return fmt.Errorf("list %s: the values to sort by have more than %d bytes: %w; order by shorter values, or narrow it",
			b.resource, b.maxBytes/16, ErrTooMuch)
	}
	return nil
}
