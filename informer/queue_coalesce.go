package informer

import "github.com/mirador-k8s/mirador/object"

// place is where a delta stands in the queue. Chunks do not move, so the
// pointer stays good until the position was taken.
type place[T any] struct {
	pos uint64
	at  *object.Delta[T]
}

// latest knows, while the queue is over its bound, where the newest delta of
// each key stands, as far back as the last mark of a list. The rest of the time
// it is off and costs nothing.
type latest[T any] struct {
	byKey    map[object.Key]place[T]
	bookmark place[T]
}

func (l *latest[T]) on() bool { return l.byKey != nil }
func (l *latest[T]) stop()    { *l = latest[T]{} }

// note records a delta that was put at the end of the queue.
func (l *latest[T]) note(d *object.Delta[T], at place[T]) {
	switch d.Type {
	case object.Added, object.Updated, object.Deleted:
		l.byKey[d.Item.Key] = at
	case object.Replaced:
		delete(l.byKey, d.Item.Key) // what follows must not move before it
	case object.Bookmark:
		l.bookmark = at
	default:
		clear(l.byKey)
		l.bookmark = place[T]{}
	}
}

// forget drops a delta that is being taken.
func (l *latest[T]) forget(d *object.Delta[T], pos uint64) {
	if !l.on() {
		return
	}
	if l.bookmark.at != nil && l.bookmark.pos == pos {
		l.bookmark = place[T]{}
	} else if at, ok := l.byKey[d.Item.Key]; ok && at.pos == pos {
		delete(l.byKey, d.Item.Key)
	}
}

// put queues one delta: at the end or, over the bound, in place of an earlier
// one.
func (q *batchQueue[T]) put(d *object.Delta[T]) {
	if q.bytes >= q.opts.maxBytes && !q.opts.keepAll {
		if !q.latest.on() {
			q.startLatest()
		}
		if q.merge(d) {
			q.merged++
			return
		}
	}
	at := place[T]{pos: q.ring.tail}
	at.at = q.ring.push(d)
	q.deltas++
	q.bytes += cost(d)
	if q.latest.on() {
		q.latest.note(d, at)
	}
	switch d.Type {
	case object.ReplaceBegin, object.ReplaceEnd, object.ReplaceAbort:
		q.afterMark = q.ring.tail
		q.inList = d.Type == object.ReplaceBegin
	}
}

// merge lets d take the place of what waits for its key, and reports whether
// that was possible.
func (q *batchQueue[T]) merge(d *object.Delta[T]) bool {
	switch d.Type {
	case object.Added, object.Updated, object.Deleted:
		at, ok := q.latest.byKey[d.Item.Key]
		if ok && q.inList {
			return false // a list is one piece, and no bookmark belongs into it
		}
		if ok {
			// What other keys did between the two states comes later than this place: the
			// history is complete here only as far as it was, and fully at the end.
			reached := at.at.Through()
			q.overwrite(at, d)
			at.at.Reached = reached
			q.vouch(d.Through())
		}
		return ok
	case object.Bookmark:
		old := q.latest.bookmark
		if old.at == nil {
			return false
		}
		if old.pos == q.ring.tail-1 {
			q.overwrite(old, d)
			return true
		}
		// A bookmark vouches for everything before it, so it moves to the end and
		// leaves a hole. Something new was queued since the old one, so there are
		// never more holes than that.
		q.bytes -= cost(old.at)
		q.deltas--
		q.merged++
		*old.at = object.Delta[T]{}
	}
	return false
}

// vouch puts a bookmark at the end of the queue.
func (q *batchQueue[T]) vouch(v object.Version) {
	if v != "" {
		q.put(&object.Delta[T]{Type: object.Bookmark, Item: object.Item[T]{Version: v}})
	}
}

func (q *batchQueue[T]) overwrite(at place[T], d *object.Delta[T]) {
	q.bytes += cost(d) - cost(at.at)
	*at.at = *d
}

// startLatest looks through what was queued since the last mark of a list.
func (q *batchQueue[T]) startLatest() {
	q.latest.byKey = make(map[object.Key]place[T])
	for at := range q.ring.from(max(q.ring.head, q.afterMark)) {
		if at.at.Type != 0 {
			q.latest.note(at.at, at)
		}
	}
}
