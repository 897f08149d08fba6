package cache

// Pop waits for a delta and processes it, as Deltas with one element.
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

// PopBatch waits for a delta and processes it together with the deltas behind it. All
// deltas of a batch are of different objects, and either all or none are initial.
func (f *RealFIFO) PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.await(); err != nil {
		return err
	}
	batch := f.take(f.batchSize())
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

// batchSize returns how many deltas at the front may be processed as one batch.
func (f *RealFIFO) batchSize() int {
	most := min(len(f.items), maxBatch)
	if f.initial.left > 0 {
		most = min(most, f.initial.left)
	}
	seen := make(map[string]bool, most)
	for n, d := range f.items[:most] {
		switch d.Type {
		case Added, Updated, Deleted, Replaced, Sync:
		default:
			return max(n, 1) // not about one object: a batch of its own
		}
		key, err := f.keyOf(d)
		if err != nil {
			return n + 1 // processing it will report the error
		}
		if seen[key] {
			return n
		}
		seen[key] = true
	}
	return most
}

// take removes and returns n deltas from the front.
func (f *RealFIFO) take(n int) []Delta {
	out := make([]Delta, n)
	copy(out, f.items)
	clear(f.items[:n])
	f.items = f.items[n:]
	if len(f.items) == 0 {
		f.items = nil
	}
	f.metrics.setDepth(len(f.items))
	return out
}

// process calls run. With UnlockWhileProcessing it releases the lock meanwhile, unless
// the queue is so long that its producers have to wait.
func (f *RealFIFO) process(n int, run func(isInInitialList bool) error) error {
	isInInitialList := !f.initial.done
	if f.opts.UnlockWhileProcessing && len(f.items) < 2*maxBatch {
		f.mu.Unlock()
		defer func() {
			f.mu.Lock()
			f.initial.processed(n)
		}()
	} else {
		defer f.initial.processed(n) // after run: the queue has synced when all initial items are processed
	}
	return f.metrics.timed(func() error { return run(isInInitialList) })
}
