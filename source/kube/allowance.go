package kube

import (
	"fmt"
	"sync/atomic"
)

// Allowance bounds the memory that the buffers of several sources take together. Each stream has a buffer of a few
// kilobytes that does not count. For larger objects it takes memory from the allowance and returns it afterwards.
// Without an allowance, each of a thousand streams from a hostile server could fill a buffer up to the size of the
// largest object.
type Allowance struct {
	size int64
	left atomic.Int64
}

// NewAllowance returns an allowance of the given size for Options.Buffers.
func NewAllowance(bytes int64) *Allowance {
	a := &Allowance{size: bytes}
	a.left.Store(bytes)
	return a
}

func (a *Allowance) take(n int64) error {
	if a.left.Add(-n) < 0 {
		a.left.Add(n)
		return garbled(fmt.Errorf("the large objects being read take more than %d bytes together; the read is retried, "+
			"and if this error persists, the server sends endless objects", a.size))
	}
	return nil
}

func (a *Allowance) give(n int64) { a.left.Add(n) }
