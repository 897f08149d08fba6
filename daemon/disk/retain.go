package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// eachResource calls do for every resource that has a descriptor.
func eachResource(r pebble.Reader, do func(res Resource, d *descriptor) error) error {
	return scan(r, []byte{spaceResource}, func(k, v []byte) error {
		res, err := splitResource(k)
		if err != nil {
			return err
		}
		d, err := decodeDescriptor(v)
		if err != nil {
			return err
		}
		return do(res, &d)
	})
}

// oldest is the first segment of a resource, and how it stands to the limits.
type oldest struct {
	res     Resource
	desc    descriptor
	number  uint32
	start   int64
	over    bool // it is too old, or its resource's history is too large
	stopped bool // its removal has begun
}

// retain drops history beyond the limits of age and size, and more of it if the folder is too large.
func (d *Disk) retain(ctx context.Context) error {
	for ctx.Err() == nil {
		all, err := d.oldest()
		if err != nil {
			return fmt.Errorf("look for history to drop: %w", err)
		}
		slices.SortFunc(all, func(a, b oldest) int {
			switch {
			case a.start < b.start:
				return -1
			case a.start > b.start:
				return 1
			}
			return 0
		})
		var drop []*oldest
		for i := range all {
			if o := &all[i]; o.over || o.stopped {
				drop = append(drop, o)
			}
		}
		if len(drop) == 0 && d.tight() && len(all) > 0 {
			drop = append(drop, &all[0])
		}
		if len(drop) == 0 {
			return nil
		}
		for _, o := range drop {
			err := d.dropOldest(ctx, o)
			if err == nil {
				err = d.collect(o.res, o.desc.id)
			}
			if err != nil {
				return fmt.Errorf("drop old history of %s: %w", o.res, err)
			}
		}
		if err := d.reclaim(ctx, drop); err != nil {
			return fmt.Errorf("make room: %w", err)
		}
	}
	return nil
}

// tight reports whether the folder is so large that history is dropped. Files that pebble is about to remove do not
// count.
func (d *Disk) tight() bool {
	if limit := d.opts.MaxBytes; limit > 0 && float64(d.space.used()) > trimShare*float64(limit) {
		e, err := d.current()
		if err != nil {
			return false
		}
		defer e.end()
		m := e.db.Metrics()
		going := int64(m.Table.ObsoleteSize + m.Table.ZombieSize + m.WAL.ObsoletePhysicalSize)
		return float64(d.space.used()-going) > trimShare*float64(limit)
	}
	u, err := d.fs.GetDiskUsage(d.dir)
	return err == nil && u.AvailBytes < reserve
}

// oldest returns the oldest segment of each resource that has changes in it.
func (d *Disk) oldest() (all []oldest, err error) {
	e, err := d.current()
	if err != nil {
		return nil, err
	}
	defer e.end()
	now := nanos(d.opts.now())
	err = eachResource(e.db, func(res Resource, desc *descriptor) error {
		if !desc.history {
			return nil
		}
		segments, err := loadSegments(e.db, desc.id)
		if err != nil || len(segments) == 0 || len(segments) == 1 && segments[0].changes == 0 {
			return err
		}
		o := oldest{res: res, desc: *desc, number: segments[0].number, start: segments[0].start, stopped: segments[0].dropping}
		if age := int64(d.opts.HistoryAge); age > 0 {
			next, err := nextBegin(e.db, desc.id, segments)
			if err != nil {
				return err
			}
			o.over = next < now-age
		}
		if most := d.opts.HistoryBytes; most > 0 && !o.over {
			size, err := historySize(e.db, desc.id, segments)
			if err != nil {
				return err
			}
			o.over = size > most
		}
		all = append(all, o)
		return nil
	})
	return all, err
}

// nextBegin returns when the history begins without its first segment.
func nextBegin(r pebble.Reader, id uint32, segments []segment) (int64, error) {
	if len(segments) > 1 {
		return segments[1].start, nil
	}
	p, err := loadProgress(r, id)
	return p.last + 1, err
}

// historySize estimates the bytes on disk of a resource's history. Of the bases it has as large a part as of the states.
func historySize(db *pebble.DB, id uint32, segments []segment) (int64, error) {
	p, err := loadProgress(db, id)
	if err != nil {
		return 0, err
	}
	history, err := usage(db, appendData(nil, id, kindHistory))
	if err != nil {
		return 0, err
	}
	bases, err := usage(db, appendData(nil, id, kindBase))
	if err != nil {
		return 0, err
	}
	changes := 1.0
	for _, s := range segments {
		changes += float64(s.changes)
	}
	return history + int64(float64(bases)*changes/(changes+float64(p.objects))), nil
}

// dropOldest drops the first segment of a resource. What follows needs the last state in it of each object, which is
// carried over first.
func (d *Disk) dropOldest(ctx context.Context, o *oldest) error {
	if err := d.maintain(o.res, o.desc.id, (*writer).stopOldest); err != nil {
		return err
	}
	var from []byte
	for ctx.Err() == nil {
		more := false
		err := d.maintain(o.res, o.desc.id, func(w *writer, r *written) (err error) {
			from, more, err = w.carry(r, from)
			return err
		})
		if err != nil {
			return err
		}
		if !more {
			return d.maintain(o.res, o.desc.id, (*writer).removeOldest)
		}
	}
	return nil
}

// maintain runs a change of one resource's stored data between two commits. It does nothing if the resource's data was
// dropped since the caller looked.
func (d *Disk) maintain(res Resource, id uint32, change func(w *writer, r *written) error) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	return d.write(func(w *writer, out *pebble.Batch) error {
		w.out = out
		clear(w.touched)
		clear(w.changed)
		clear(w.named)
		r, err := w.outline(res)
		var unknown *UnknownError
		if errors.As(err, &unknown) || err == nil && r.desc.id != id {
			return nil
		}
		if err != nil {
			return err
		}
		return change(w, r)
	})
}

// outline returns a resource. If its objects were not loaded, they are not loaded here.
func (w *writer) outline(res Resource) (*written, error) {
	if r := w.resources[res]; r != nil {
		return r, nil
	}
	return w.load(res)
}

// stopOldest moves the beginning of the history behind the first segment.
func (w *writer) stopOldest(r *written) error {
	if len(r.segments) == 0 || r.segments[0].dropping {
		return nil
	}
	if len(r.segments) == 1 {
		r.progress.last++ // also the history of a resource that was not complete yet begins in the next segment
		if err := w.beginSegment(r, r.segments[0].number+1, r.progress.last); err != nil {
			return err
		}
	}
	r.segments[0].dropping = true
	if r.progress.begin != 0 {
		r.progress.begin = max(r.progress.begin, r.segments[1].start)
	}
	if err := w.setSegment(r, &r.segments[0]); err != nil {
		return err
	}
	return w.setProgress(r)
}

// carried is how many changes are looked at in one commit, so that other commits do not wait long.
const carried = 10_000

// carry carries the last states of some objects over, from a key of the history on. It returns where to go on.
func (w *writer) carry(r *written, from []byte) (next []byte, more bool, err error) {
	if len(r.segments) == 0 || !r.segments[0].dropping {
		return nil, false, nil
	}
	prefix := appendSegment(nil, r.desc.id, kindHistory, r.segments[0].number)
	if from == nil {
		from = prefix
	}
	it, err := w.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: after(prefix)})
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var last []byte
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		k := it.Key()
		key, at, err := splitHistory(k)
		if err != nil {
			return nil, false, err
		}
		if n++; n > carried && string(key) != string(last) {
			return slices.Clone(k), true, nil
		}
		if last != nil && string(key) == string(last) {
			continue
		}
		last = append(last[:0], key...)
		v, err := it.ValueAndErr()
		if err != nil {
			return nil, false, err
		}
		if err := w.carryOne(r, k, string(key), at, v); err != nil {
			return nil, false, err
		}
	}
	return nil, false, it.Error()
}

// carryOne carries one state over, unless a newer one was carried already. After a deletion there is nothing to carry.
func (w *writer) carryOne(r *written, k []byte, key string, at int64, stored []byte) error {
	v, err := r.seal.open(nil, k, stored)
	if err != nil {
		return err
	}
	rec, err := decodeRecord(v)
	if err != nil {
		return err
	}
	own := append(appendData(nil, r.desc.id, kindCarried), key...)
	old, err := get(w.db, own)
	if err != nil {
		return err
	}
	if old != nil {
		if old, err = r.seal.open(nil, own, old); err != nil {
			return err
		}
		if was, _, err := recordTime(old); err != nil || was >= at {
			return err
		}
	}
	if rec.flags&flagDeletion != 0 {
		if old == nil {
			return nil
		}
		return w.out.Delete(own, nil)
	}
	rec.time = at
	rec.flags |= flagTime
	w.key = own
	return w.setSealed(r, &rec)
}

// removeOldest removes the first segment, and what only it needed.
func (w *writer) removeOldest(r *written) error {
	if len(r.segments) < 2 || !r.segments[0].dropping {
		return nil
	}
	number, end, id := r.segments[0].number, r.segments[1].start, r.desc.id
	unlabels := appendSegment(nil, id, kindUnlabel, number)
	err := scan(w.db, unlabels, func(k, v []byte) error {
		posting := append(appendData(nil, id, kindPosting), k[segmentPrefix:]...)
		got, err := get(w.db, posting)
		if err != nil || got == nil {
			return err
		}
		if len(v) != 8 || len(got) != 8 {
			return errBadRecord
		}
		if binary.BigEndian.Uint64(got) > binary.BigEndian.Uint64(v) {
			return nil // the object has the label again
		}
		return w.out.Delete(posting, nil)
	})
	if err != nil {
		return err
	}
	deletions := appendData(nil, id, kindDeletion)
	err = errors.Join(
		w.drop(appendSegment(nil, id, kindHistory, number)),
		w.drop(appendSegment(nil, id, kindUse, number)),
		w.drop(unlabels),
		w.out.Delete(appendSegment(nil, id, kindSegment, number), nil),
		w.out.DeleteRange(deletions, binary.BigEndian.AppendUint64(slices.Clone(deletions), uint64(end)), nil),
		scan(w.db, appendData(nil, id, kindGap), func(k, v []byte) error {
			if len(v) == 8 && int64(binary.BigEndian.Uint64(v)) <= end {
				return w.out.Delete(slices.Clone(k), nil)
			}
			return nil
		}))
	r.segments = slices.Delete(r.segments, 0, 1)
	return err
}

// reclaim removes the files of dropped history at once if the folder is too large, and leaves that to pebble otherwise.
func (d *Disk) reclaim(ctx context.Context, dropped []*oldest) error {
	if !d.tight() {
		return nil
	}
	e, err := d.current()
	if err != nil {
		return err
	}
	defer e.end()
	if err := e.flush(ctx); err != nil {
		return err
	}
	for _, o := range dropped {
		prefix := appendSegment(nil, o.desc.id, kindHistory, o.number)
		if err := e.compact(ctx, prefix, after(prefix)); err != nil {
			return err
		}
	}
	return nil
}
