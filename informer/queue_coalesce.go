package informer

import "github.com/mirador-k8s/mirador/object"

// place is the position of a delta in the queue. Chunks do not move, so the pointer is valid until the delta is taken.
type place[T any] struct {
	pos uint64
	at  *object.Delta[T]
}

// latest is an index of the newest delta of each key since the last beginning or end of a list. It exists only while
// the queue is over its bound.
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
		delete(l.byKey, d.Item.Key) // later deltas must not move before it
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

// merge replaces the waiting delta of the same key by d, and reports whether there was one.
func (q *batchQueue[T]) merge(d *object.Delta[T]) bool {
	switch d.Type {
	case object.Added, object.Updated, object.Deleted:
		at, ok := q.latest.byKey[d.Item.Key]
		if ok && q.inList {
			return false // there are no bookmarks inside a list
		}
		if ok {
			// Changes of other keys between the two states come after this place. So history is complete here only up to the
			// earlier state, and up to the later one at the end of the queue.
			reached := at.at.Through()
			q.overwrite(at, d)
			at.at.Reached = reached
			q.appendBookmark(d.Through())
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
		// A bookmark covers all deltas before it, so it moves to the end and leaves a hole. There is at least one delta
		// after each hole, so the holes are bounded.
		q.bytes -= cost(old.at)
		q.deltas--
		q.merged++
		*old.at = object.Delta[T]{}
	}
	return false
}

// appendBookmark puts a bookmark at the end of the queue.
func (q *batchQueue[T]) appendBookmark(v object.Version) {
	if v != "" {
		q.put(&object.Delta[T]{Type: object.Bookmark, Item: object.Item[T]{Version: v}})
	}
}

func (q *batchQueue[T]) overwrite(at place[T], d *object.Delta[T]) {
	q.bytes += cost(d) - cost(at.at)
	*at.at = *d
}

// startLatest indexes the deltas since the last beginning or end of a list.
func (q *batchQueue[T]) startLatest() {
	q.latest.byKey = make(map[object.Key]place[T])
	for at := range q.ring.from(max(q.ring.head, q.afterMark)) {
		if at.at.Type != 0 {
			q.latest.note(at.at, at)
		}
	}
}
