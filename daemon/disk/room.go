package disk

import (
	"fmt"
)

// Shares of Options.MaxBytes. The rest is for pebble, which writes files before it removes those that they replace.
const (
	trimShare   = 0.60 // above it, the oldest history is dropped
	pauseShare  = 0.75 // above it, history pauses
	refuseShare = 0.85 // above it, nothing is written that does not free space
)

// room says what may be written.
type room struct {
	history bool
	err     error // why nothing may be written
}

// room looks at the size of the folder and at the free space of the file system.
func (d *Disk) room() room {
	r := room{history: true}
	if limit := d.opts.MaxBytes; limit > 0 {
		used := float64(d.space.used()) / float64(limit)
		r.history = used < pauseShare
		if used >= refuseShare {
			r.err = fmt.Errorf("the data folder %s has %d of at most %d bytes, and the rest is needed to tidy up; allow "+
				"more, or mirror less", d.dir, d.space.used(), limit)
		}
		if used >= trimShare {
			d.awake()
		}
	}
	if u, err := d.fs.GetDiskUsage(d.dir); err == nil {
		if u.AvailBytes < reserve {
			r.history = false
			d.awake()
		}
		if u.AvailBytes < reserve/2 {
			r.err = fmt.Errorf("the file system of %s has %d bytes left, and %d are kept free; free some space", d.dir,
				u.AvailBytes, reserve/2)
		}
	}
	if d.opts.noRoom != nil && d.opts.noRoom() {
		r.history = false
	}
	d.health.setPaused(!r.history)
	return r
}

// fits reports whether a batch fits. It is in the log, in a table of level 0 and in the table of a compaction until the
// older ones are removed.
func (d *Disk) fits(batch int64) error {
	if limit := d.opts.MaxBytes; limit > 0 && d.space.used()+3*batch > limit*95/100 {
		return fmt.Errorf("a batch of %d bytes does not fit into the data folder %s, which has %d of at most %d bytes",
			batch, d.dir, d.space.used(), limit)
	}
	return nil
}
