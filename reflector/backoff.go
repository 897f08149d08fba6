package reflector

import (
	"math/rand/v2"
	"time"
)

// Backoff spaces failed attempts: First after the first failure, Factor times as
// long after each further one up to Most, each stretched at random by up to its own
// length so that a fleet of clients does not come back all at once. Rare is the
// pace at which a resource that is not served is asked for.
type Backoff struct {
	// First is the first wait, Most the longest, Rare the one for what is not served.
	First, Most, Rare time.Duration
	// Factor is 2 unless another is given.
	Factor float64
	// Rand gives a number in [0, 1); a test or a simulation puts its own here.
	Rand func() float64
}

func (b Backoff) orDefault() Backoff {
	if b.First <= 0 {
		b.First = 800 * time.Millisecond
	}
	if b.Most <= 0 {
		b.Most = 30 * time.Second
	}
	if b.Rare <= 0 {
		b.Rare = time.Minute
	}
	if b.Factor < 1 {
		b.Factor = 2
	}
	if b.Rand == nil {
		b.Rand = rand.Float64
	}
	return b
}

// after gives the wait that follows the n-th failure in a row, n from 1.
func (b Backoff) after(n int) time.Duration {
	d := b.First
	for range n - 1 {
		if d = time.Duration(float64(d) * b.Factor); d >= b.Most {
			d = b.Most
			break
		}
	}
	return b.stretch(d)
}

func (b Backoff) stretch(d time.Duration) time.Duration {
	return d + time.Duration(b.Rand()*float64(d))
}
