package queue

// Depth returns the number of queued keys and of their deltas.
func (f *DeltaFIFO[T]) Depth() (keys, deltas int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.order.len(), f.deltas
}
