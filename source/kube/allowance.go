package kube

import (
	"fmt"
	"sync/atomic"
)

// Allowance bounds the memory that the buffers of several sources take together. Each stream has a buffer of a few
// kilobytes that does not count. For larger objects it takes memory from the allowance and returns it afterwards. Without
// an allowance, each of a thousand streams from a hostile server could fill a buffer up to the size of the largest object.
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
		return garbled(fmt.Errorf("large objects that are under way take more than %d bytes together; it is tried again, "+
			"and if it stays so, the server sends objects without end", a.size))
	}
	return nil
}

func (a *Allowance) give(n int64) { a.left.Add(n) }
