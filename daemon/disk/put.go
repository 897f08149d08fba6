package disk

import (
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/mirador-k8s/mirador/store"
)

// put writes an object's newest state, and adds it to the history.
func (w *writer) put(r *written, s *State) error {
	hash := w.hash([]byte(s.Key))
	was, found := r.objects[hash]
	at, err := w.nextChange(r, s.Time)
	if err != nil {
		return err
	}
	if err := w.keepOld(r, string(s.Key), was, found); err != nil {
		return err
	}
	base, err := w.base(r, s.Object.Base())
	if err != nil {
		return err
	}
	rec := record{time: at, base: base, uid: s.UID, version: s.Version, size: s.Size, data: s.Object.Data()}
	now := newest{}
	if r.recording() {
		if err := w.addHistory(r, len(r.segments)-1, string(s.Key), &rec); err != nil {
			return err
		}
	} else if r.desc.history {
		now.pause = r.pause
		rec.flags |= flagUnrecorded
	}
	rec.flags |= flagTime
	w.key = append(appendData(w.key[:0], r.desc.id, kindState), s.Key...)
	if err := w.setSealed(r, &rec); err != nil {
		return err
	}
	if s.SameLabels && found {
		now.labels = was.labels
	} else if now.labels, err = w.setLabels(r, string(s.Key), at, s.Labels, was.labels); err != nil {
		return err
	}
	r.objects[hash], w.changed[hash] = now, true
	if !found {
		r.progress.objects++
	}
	return nil
}

// remove writes that an object was deleted.
func (w *writer) remove(r *written, s *State) error {
	hash := w.hash([]byte(s.Key))
	was, found := r.objects[hash]
	if !found {
		return nil
	}
	at, err := w.nextChange(r, s.Time)
	if err != nil {
		return err
	}
	key := string(s.Key)
	if err := w.keepOld(r, key, was, found); err != nil {
		return err
	}
	w.key = append(appendData(w.key[:0], r.desc.id, kindState), key...)
	if err := w.out.Delete(w.key, nil); err != nil {
		return err
	}
	if r.desc.history {
		rec := record{flags: flagDeletion, version: s.Version, time: at}
		if err := w.addHistory(r, len(r.segments)-1, key, &rec); err != nil {
			return err
		}
		w.key = appendDeletion(w.key[:0], r.desc.id, at, key)
		if err := w.set(w.key, nil); err != nil {
			return err
		}
	}
	if _, err := w.setLabels(r, key, at, nil, was.labels); err != nil {
		return err
	}
	delete(r.objects, hash)
	w.changed[hash] = true
	r.progress.objects--
	return nil
}

// nextChange returns the time of the next change of a resource: later than the last one and the beginning of the
// history. If that begins another segment, everything of the change is in it.
func (w *writer) nextChange(r *written, t time.Time) (at int64, err error) {
	at = max(nanos(t), r.progress.settled()+1)
	r.progress.last = at
	if r.desc.history {
		err = w.segment(r, at)
	}
	return at, err
}

// recording reports whether new states are added to the history.
func (r *written) recording() bool { return r.desc.history && r.progress.pausing == 0 }

// setSealed writes a record under w.key.
func (w *writer) setSealed(r *written, rec *record) error {
	w.value = rec.append(w.value[:0])
	if r.seal == nil {
		return w.set(w.key, w.value)
	}
	w.sealed = r.seal.seal(w.sealed[:0], w.key, w.value)
	return w.set(w.key, w.sealed)
}

// addHistory writes a record to one of the segments.
func (w *writer) addHistory(r *written, segment int, key string, rec *record) error {
	s := &r.segments[segment]
	w.key = appendHistory(w.key[:0], r.desc.id, s.number, key, rec.time)
	if err := w.setSealed(r, rec); err != nil {
		return err
	}
	s.changes++
	s.bytes += uint64(len(w.key) + len(w.value))
	return w.use(r, s.number, rec.base)
}

// keepOld adds the state that is about to be replaced to the history if the history does not have it, unless it was
// written in the current pause: then the history has a gap where the state would be.
func (w *writer) keepOld(r *written, key string, was newest, found bool) error {
	if !found || !r.desc.history || was.pause == 0 || !r.recording() && was.pause == r.pause {
		return nil
	}
	k := append(appendData(nil, r.desc.id, kindState), key...)
	rec, ok, err := w.pendingRecord(r, k)
	if err != nil || !ok {
		return err
	}
	rec.flags &^= flagUnrecorded
	segment := segmentAt(r.segments, rec.time)
	if segment < 0 || r.segments[segment].dropping {
		w.key = append(appendData(w.key[:0], r.desc.id, kindCarried), key...)
		return w.setSealed(r, &rec)
	}
	rec.flags &^= flagTime
	if err := w.addHistory(r, segment, key, &rec); err != nil {
		return err
	}
	return w.setSegment(r, &r.segments[segment])
}

// pendingRecord returns a stored record as it will be after the batch.
func (w *writer) pendingRecord(r *written, key []byte) (rec record, ok bool, err error) {
	v, err := w.pending(key)
	if err != nil || v == nil {
		return rec, false, err
	}
	if v, err = r.seal.open(nil, key, v); err != nil {
		return rec, false, err
	}
	rec, err = decodeRecord(v)
	return rec, err == nil, err
}

// pending returns the value of an object's key as it will be after the batch. The batch has no index, so it is read
// for the few objects that change twice in one batch.
func (w *writer) pending(key []byte) ([]byte, error) {
	if !w.changed[w.hash(key[dataPrefix:])] {
		return get(w.db, key)
	}
	var value []byte
	found := false
	for reader := w.out.Reader(); ; {
		kind, k, v, ok, err := reader.Next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if string(k) == string(key) {
			if found, value = true, nil; kind == pebble.InternalKeyKindSet {
				value = slices.Clone(v)
			}
		}
	}
	if found {
		return value, nil
	}
	return get(w.db, key)
}

// segmentAt returns the place of the segment that a time belongs to, -1 if it is before all of them.
func segmentAt(segments []segment, at int64) int {
	n, found := slices.BinarySearchFunc(segments, at, func(s segment, at int64) int {
		switch {
		case s.start < at:
			return -1
		case s.start > at:
			return 1
		}
		return 0
	})
	if found {
		return n
	}
	return n - 1
}

// segment begins the first segment, and another one when the last one is old or large enough.
func (w *writer) segment(r *written, at int64) error {
	n := len(r.segments)
	if n == 0 {
		return w.beginSegment(r, 1, at)
	}
	s := &r.segments[n-1]
	age, bytes := w.disk.segmentAge(), w.disk.segmentBytes()
	if s.changes > 0 && (age > 0 && at-s.start >= age || s.bytes >= bytes) {
		if err := w.setSegment(r, s); err != nil {
			return err
		}
		return w.beginSegment(r, s.number+1, at)
	}
	return nil
}

func (w *writer) beginSegment(r *written, number uint32, at int64) error {
	r.segments = append(r.segments, segment{number: number, start: at})
	return w.setSegment(r, &r.segments[len(r.segments)-1])
}

// base returns the number of a base, and writes it and its parents if they are new or have got a shape.
func (w *writer) base(r *written, b *store.PackedBase) (uint32, error) {
	if b == nil {
		return 0, nil
	}
	kept := r.bases[b.ID()]
	if kept == nil || !kept.shape && b.Shape() != "" {
		parent, err := w.base(r, b.Parent())
		if err != nil {
			return 0, err
		}
		if kept == nil {
			r.lastBase++
			r.newBases++
			kept = &keptBase{number: r.lastBase, parent: parent}
			r.bases[b.ID()] = kept
		}
		shape := b.Shape()
		kept.shape = shape != ""
		rec := baseRecord{id: b.ID(), parent: parent, length: b.Len(), shape: shape, data: b.Data()}
		key := appendBase(nil, r.desc.id, kept.number)
		if err := w.set(key, r.seal.seal(nil, key, rec.append(nil))); err != nil {
			return 0, err
		}
		if n := len(r.segments); n > 0 {
			r.segments[n-1].bytes += uint64(len(rec.data))
		}
	}
	if r.used != nil {
		r.used[kept.number], r.used[kept.parent] = true, true
	}
	return kept.number, nil
}

// use records that a segment uses a base.
func (w *writer) use(r *written, segment, base uint32) error {
	if base == 0 || r.usedIn[base] == segment {
		return nil
	}
	r.usedIn[base] = segment
	return w.set(appendUse(nil, r.desc.id, segment, base), nil)
}

// segmentAge and segmentBytes are when another segment begins: segments have to be few, because a read may look into
// each, and small compared with the limits, because history is dropped by segments.
func (d *Disk) segmentAge() int64 { return int64(d.opts.HistoryAge / 16) }

func (d *Disk) segmentBytes() uint64 {
	most := int64(256 << 20)
	if d.opts.HistoryBytes > 0 {
		most = min(most, d.opts.HistoryBytes/8)
	}
	if d.opts.MaxBytes > 0 {
		most = min(most, d.opts.MaxBytes/16)
	}
	return uint64(max(most, 1))
}
