package kube

import (
	"fmt"
	"sync/atomic"
)

// Allowance bounds what the buffers of several sources take together. Each stream has
// a buffer of some kilobytes that does not count; what it needs beyond that, for objects
// that are larger, it takes from here and gives back. Without one, each of a thousand
// streams of a hostile server could fill a buffer of its own up to the largest object.
type Allowance struct {
	size int64
	left atomic.Int64
}

// NewAllowance makes an allowance of so many bytes; Buffers gives it to sources.
func NewAllowance(bytes int64) *Allowance {
	a := &Allowance{size: bytes}
	a.left.Store(bytes)
	return a
}

func (a *Allowance) take(n int64) error {
	if a.left.Add(-n) < 0 {
		a.left.Add(n)
		return garbled(fmt.Errorf("large objects that are under way take more than %d bytes together; it is tried again, "+
			"and if it stays so, the server sends objects without end", a.size))
	}
	return nil
}

func (a *Allowance) give(n int64) { a.left.Add(n) }

// Buffers has the streams of a source take what large objects need from an allowance
// that they share with other sources.
func Buffers(a *Allowance) Option { return func(o *options) { o.buffers = a } }
