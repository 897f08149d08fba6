package cache

// Pop waits for a delta and processes it, wrapped in Deltas.
func (f *RealFIFO) Pop(process PopProcessFunc) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.await(); err != nil {
		return nil, err
	}
	item := Deltas(f.take(1))
	err := f.process(1, func(isInInitialList bool) error { return process(item, isInInitialList) })
	return item, err
}

// PopBatch waits for a delta, takes along those that may be processed with it, and
// processes them: deltas of different objects, and of the initial ones no others.
func (f *RealFIFO) PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.await(); err != nil {
		return err
	}
	batch := f.take(f.together())
	return f.process(len(batch), func(isInInitialList bool) error {
		if len(batch) == 1 {
			return processSingle(Deltas(batch), isInInitialList)
		}
		return processBatch(batch, isInInitialList)
	})
}

// await returns when something is queued.
func (f *RealFIFO) await() error {
	for len(f.items) == 0 {
		if f.closed {
			return ErrFIFOClosed
		}
		f.arrived.Wait()
	}
	return nil
}

// together says how many deltas from the front may be processed as one batch.
func (f *RealFIFO) together() int {
	most := min(len(f.items), realBatch)
	if f.initial.left > 0 {
		most = min(most, f.initial.left)
	}
	seen := make(map[string]bool, most)
	for n, d := range f.items[:most] {
		switch d.Type {
		case Added, Updated, Deleted, Replaced, Sync:
		default:
			return max(n, 1) // a mark stands alone
		}
		key, err := f.keyOf(d)
		if err != nil {
			return n + 1 // whoever processes it reports it
		}
		if seen[key] {
			return n
		}
		seen[key] = true
	}
	return most
}

// take removes deltas from the front.
func (f *RealFIFO) take(n int) []Delta {
	out := make([]Delta, n)
	copy(out, f.items)
	clear(f.items[:n])
	f.items = f.items[n:]
	if len(f.items) == 0 {
		f.items = nil
	}
	f.metrics.waiting(len(f.items))
	return out
}

// process runs while the lock is held or, where that was asked for and the queue is
// short enough not to run away, without it.
func (f *RealFIFO) process(n int, run func(isInInitialList bool) error) error {
	isInInitialList := !f.initial.done
	if f.opts.UnlockWhileProcessing && len(f.items) < 2*realBatch {
		f.mu.Unlock()
		defer func() {
			f.mu.Lock()
			f.initial.processed(n)
		}()
	} else {
		defer f.initial.processed(n) // not before: until then it has not synced
	}
	return f.metrics.timed(func() error { return run(isInInitialList) })
}
