package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Compact removes dropped data from the files now. It goes resource by resource, so that it needs little more space.
func (d *Disk) Compact(ctx context.Context) error {
	e, err := d.current()
	if err != nil {
		return err
	}
	defer e.end()
	if err := e.flush(ctx); err != nil {
		return fmt.Errorf("compact the data folder %s: %w", d.dir, err)
	}
	err = d.compact(ctx, e)
	if pebble.IsCorruptionError(err) {
		err = &DamageError{What: "the data folder " + d.dir, Err: err}
	}
	return err
}

// compact compacts all data.
func (d *Disk) compact(ctx context.Context, e *engine) error {
	last, err := get(e.db, append([]byte{spaceCounter}, "resource"...))
	if err != nil {
		return fmt.Errorf("compact the data folder %s: %w", d.dir, err)
	}
	resources := uint32(0)
	if len(last) == 4 {
		resources = binary.BigEndian.Uint32(last)
	}
	from := []byte{0}
	for id := range resources + 1 {
		_, to := allData(id)
		used, err := e.db.EstimateDiskUsage(from, to)
		if err == nil && used > 0 {
			err = e.compact(ctx, from, to)
		}
		if err != nil {
			return fmt.Errorf("compact the data folder %s: %w", d.dir, err)
		}
		from = to
	}
	return nil
}

// DropCluster removes a cluster and everything of it.
func (d *Disk) DropCluster(name string) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	err := d.write(func(w *writer, out *pebble.Batch) error {
		w.out = out
		c, ok, err := loadCluster(w.db, name)
		if err != nil {
			return err
		}
		if !ok {
			return errors.New("there is no such cluster")
		}
		return w.dropCluster(name, c.id)
	})
	if err != nil {
		return fmt.Errorf("drop the cluster %s from the data folder %s: %w", name, d.dir, err)
	}
	if err := d.dropRecords(); err != nil { // they name objects of the cluster, and are worth little
		return fmt.Errorf("drop the cluster %s from the data folder %s: remove the records: %w", name, d.dir, err)
	}
	return nil
}
