package reflector

import (
	"math/rand/v2"
	"time"
)

// Backoff spaces failed attempts. The wait is First after the first failure, is multiplied
// by Factor after each further one, and is at most Most. Each wait is extended at random by
// up to its own length, so that many clients do not return at the same time.
type Backoff struct {
	// First is the first wait, Most the longest, and Rare the wait between requests for a
	// resource that is not served. The defaults are 800 milliseconds, 30 seconds and 1 minute.
	First, Most, Rare time.Duration
	// Factor is at least 1. The default is 2.
	Factor float64
	// Rand returns a random number in [0, 1). The default is math/rand/v2.Float64.
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

// after returns the wait after the n-th consecutive failure, counted from 1.
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

// stretch extends d at random by up to its own length.
func (b Backoff) stretch(d time.Duration) time.Duration {
	return d + time.Duration(b.Rand()*float64(d))
}
