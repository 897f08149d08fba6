package disk

import (
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// compactions is a scheduler that permits no compaction before begin is called.
type compactions struct {
	*pebble.ConcurrencyLimitScheduler
	db       pebble.DBForCompaction
	begun    atomic.Bool
	granting sync.Mutex // held by begin, so that the database is not closed meanwhile
}

// newCompactions returns a scheduler. The usual one polls every 100 ms, because limits may change; ours do not. It
// would also go on for ever if the database cannot be opened.
func newCompactions(begun bool) *compactions {
	c := &compactions{ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()}
	c.begun.Store(begun)
	return c
}

// Register implements pebble.CompactionScheduler.
func (c *compactions) Register(goroutines int, db pebble.DBForCompaction) {
	c.db = db
	c.ConcurrencyLimitScheduler.Register(goroutines, db)
}

// Unregister implements pebble.CompactionScheduler.
func (c *compactions) Unregister() {
	c.granting.Lock()
	defer c.granting.Unlock()
	c.ConcurrencyLimitScheduler.Unregister()
}

// TrySchedule implements pebble.CompactionScheduler.
func (c *compactions) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !c.begun.Load() {
		return false, nil // begin grants it
	}
	return c.ConcurrencyLimitScheduler.TrySchedule()
}

// begin permits compactions.
func (c *compactions) begin() {
	c.granting.Lock()
	defer c.granting.Unlock()
	c.begun.Store(true)
	if ok, grant := c.TrySchedule(); ok && !c.db.Schedule(grant) {
		grant.Done()
	}
}
