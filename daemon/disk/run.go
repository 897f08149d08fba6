package disk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// How often Run looks at the limits, and how long it waits before it opens the database again.
const (
	runEvery   = 10 * time.Second
	reviveMin  = time.Second
	reviveMost = time.Minute
)

// Run does what has to be done in the background: it drops old history and unused bases, and opens the database again
// after a failure. It returns when ctx ends, and leaves no goroutine.
func (d *Disk) Run(ctx context.Context) {
	var closing sync.WaitGroup
	defer closing.Wait()
	tick := time.NewTicker(runEvery)
	defer tick.Stop()
	var retry <-chan time.Time
	wait := reviveMin
	for {
		if retry == nil && d.broken() != nil {
			if err := d.revive(&closing); err != nil {
				d.log.Error("cannot open the data folder again", "folder", d.dir, "error", err, "retry", wait)
				retry = time.After(wait)
				wait = min(2*wait, reviveMost)
			} else {
				wait = reviveMin
			}
		}
		if retry == nil {
			d.tidy(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-retry:
			retry = nil
		case <-d.wake:
		case <-tick.C:
		}
	}
}

// tidy drops what is not needed.
func (d *Disk) tidy(ctx context.Context) {
	err := d.retain(ctx)
	for _, c := range d.collections() {
		err = errors.Join(err, d.collect(c.Resource, c.id))
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrClosed) {
		d.log.Warn("cannot tidy the data folder", "folder", d.dir, "error", err)
	}
}

// collection is a resource whose bases may be collected.
type collection struct {
	Resource
	id uint32
}

// collections returns the resources that got many bases since they were looked at.
func (d *Disk) collections() (all []collection) {
	d.writing.Lock()
	defer d.writing.Unlock()
	if d.writer == nil {
		return nil // the database was never open
	}
	for res, r := range d.writer.resources {
		if r.newBases >= max(64, len(r.bases)/2) {
			all = append(all, collection{res, r.desc.id})
		}
	}
	return all
}

// broken returns why the engine must be replaced, or nil.
func (d *Disk) broken() error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return nil
	}
	if d.engine == nil {
		return errors.New("it is not open")
	}
	if err := d.engine.files.failure(); err != nil {
		return err
	}
	if path := d.engine.damage.Load(); path != nil && !d.damaged {
		return fmt.Errorf("the file %s is damaged", *path)
	}
	return nil
}

// stopChanges returns when an engine that must be replaced changes nothing on disk any more. Otherwise it could still
// create a file that the next one has made under the same name, which would empty that.
func (d *Disk) stopChanges() {
	cause := d.broken()
	d.mu.RLock()
	e := d.engine
	d.mu.RUnlock()
	if cause != nil && e != nil {
		e.files.fail(cause)
		e.files.awaitChanges()
	}
}

// revive replaces the engine. What the old one had not made durable is gone.
func (d *Disk) revive(closing *sync.WaitGroup) error {
	d.stopChanges()
	d.writing.Lock()
	defer d.writing.Unlock()
	cause := d.broken()
	if cause == nil {
		return nil
	}
	d.health.setEngine(d.opts.now(), fmt.Errorf("the data folder %s failed: %w", d.dir, cause))
	d.mu.Lock()
	old := d.engine
	d.engine = nil
	if old != nil && old.damage.Load() != nil {
		d.damaged = true
	}
	d.mu.Unlock()
	if old != nil {
		old.files.fail(cause)
		closing.Go(func() {
			if err := old.close(); err != nil && !errors.Is(err, cause) {
				d.log.Warn("the failed database did not close well", "folder", d.dir, "error", err)
			}
		})
	}
	err := d.ledger.check(d.database())
	if err == nil {
		err = d.space.count(d.fs)
	}
	if err == nil {
		err = d.openEngine()
	}
	if err != nil {
		d.health.setEngine(d.opts.now(), fmt.Errorf("the data folder %s failed (%w) and cannot be opened again: %w", d.dir,
			cause, err))
		return err
	}
	if d.damaged {
		d.health.setEngine(d.opts.now(), &DamageError{What: "the data folder " + d.dir, Err: cause})
	} else {
		d.health.setEngine(d.opts.now(), nil)
	}
	d.log.Info("the data folder is open again", "folder", d.dir, "after", cause)
	return nil
}
