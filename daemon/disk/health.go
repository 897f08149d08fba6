package disk

import (
	"fmt"
	"sync"
	"time"
)

// Health says how writing goes.
type Health struct {
	// Err is why nothing or not everything is written; nil if all is well. Since is when that began.
	Err   error
	Since time.Time
	// Committed is when the last batch was acknowledged.
	Committed time.Time
	// Bytes is the size of all files, and MaxBytes its limit; 0 means none.
	Bytes, MaxBytes int64
	// Paused says that history is not written, because Bytes has come close to MaxBytes or the file system is almost
	// full.
	Paused bool
}

// slowCommit is how long a commit may take before Health says that the disk does not answer.
const slowCommit = 10 * time.Second

// healthState has a lock of its own, so that it can be read while the disk does not answer.
type healthState struct {
	mu        sync.Mutex
	err       error // of the last commit
	engine    error // why the engine was stopped, or cannot be opened
	since     time.Time
	committed time.Time
	begun     time.Time // of the commit that runs; zero if none does
	paused    bool
}

// begin records that a commit begins.
func (h *healthState) begin(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = now
}

// end records what became of a commit.
func (h *healthState) end(now time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.change(now, func() { h.err = err })
	h.begun = time.Time{}
	if err == nil {
		h.committed = now
	}
}

// setEngine records why the engine does not work, or nil.
func (h *healthState) setEngine(now time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.change(now, func() { h.engine = err })
}

func (h *healthState) engineError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.engine
}

func (h *healthState) setPaused(paused bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused = paused
}

// change notes when errors begin.
func (h *healthState) change(now time.Time, change func()) {
	well := h.err == nil && h.engine == nil
	change()
	if well {
		h.since = now
	}
}

// Health returns the state of writing. It never waits for the disk.
func (d *Disk) Health() Health {
	now := d.opts.now()
	h := &d.health
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Health{Err: h.engine, Since: h.since, Committed: h.committed, Bytes: d.space.used(), MaxBytes: d.opts.MaxBytes,
		Paused: h.paused}
	if s.Err == nil {
		s.Err = h.err
	}
	if s.Err == nil {
		s.Since = time.Time{}
		if !h.begun.IsZero() && now.Sub(h.begun) > slowCommit {
			s.Since = h.begun
			s.Err = fmt.Errorf("writing to the data folder %s has not ended for %s; look at the disk", d.dir,
				now.Sub(h.begun).Round(time.Second))
		}
	}
	return s
}
