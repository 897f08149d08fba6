package store

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// ErrGone is wrapped by the error of Since if the log does not reach back to a version: the caller has to read the
// whole state again.
var ErrGone = errors.New("the changes since this version are gone")

// LogEntry is one change of the store.
type LogEntry[T any] struct {
	// Version is the store's version at this change. It never decreases within a log.
	Version object.Version
	Key     object.Key
	// Old and New are the object before and after the change. Old is nil for an add, New for a delete. Both are
	// read-only.
	Old, New *Entry[T]
}

const (
	// entryCost is the cost of an entry besides its objects.
	entryCost = 64
	// chunkLen is the number of entries in an allocation.
	chunkLen = 16
	// parts bounds chunks, because the log drops whole chunks: a chunk is full if it has this fraction of the log's
	// bytes or covers this fraction of its age.
	parts = 16
)

type logged[T any] struct {
	LogEntry[T]
	at time.Duration // since config.born
}

// logChunk is a sequence of entries. The entries that readers can see never change; the writer appends after them.
type logChunk[T any] struct {
	entries [chunkLen]logged[T]
	n       int
	bytes   int
	next    *logChunk[T]
}

func (c *logChunk[T]) last() *logged[T] { return &c.entries[c.n-1] }

// history is the log as readers see it. A batch that changes it publishes a new one.
type history[T any] struct {
	start     object.Version // the log is complete after this version; "" if there is no log
	ambiguous bool           // more than one state had the version start: the log is complete only after a later one
	first     *logChunk[T]
	last      *logChunk[T]
	lastN     int // number of entries of last
}

// changeLog is the writer's side of the log.
type changeLog[T any] struct {
	cfg       *config[T]
	start     object.Version
	ambiguous bool // more than one state had the version start
	first     *logChunk[T]
	last      *logChunk[T]
	bytes     int
}

// end drops all entries. The log starts again at a version or, if start is "", at the next one.
func (l *changeLog[T]) end(start object.Version) {
	l.ambiguous = l.ambiguous && start == l.start
	l.start, l.first, l.last, l.bytes = start, nil, nil, 0
}

// append adds a change. A change whose version is not after the log's start belongs to the start and is not kept,
// because no caller of Since can ask for it.
func (l *changeLog[T]) append(version object.Version, key object.Key, old, now *record[T], at time.Duration) {
	if l.start == "" {
		l.start = version
	}
	if l.cfg.logBytes <= 0 || !l.start.Before(version) {
		return
	}
	cost := entryCost
	if old != nil {
		cost += old.Size
	}
	if now != nil {
		cost += now.Size
	}
	if l.last == nil || l.closed(l.last, at) {
		c := &logChunk[T]{}
		if l.last == nil {
			l.first = c
		} else {
			l.last.next = c
		}
		l.last = c
	}
	c := l.last
	c.entries[c.n] = logged[T]{LogEntry[T]{version, key, old.entry(), now.entry()}, at}
	c.n++
	c.bytes += cost
	l.bytes += cost
}

func (l *changeLog[T]) closed(c *logChunk[T], at time.Duration) bool {
	return c.n == chunkLen || c.bytes >= l.cfg.logBytes/parts ||
		l.cfg.logAge > 0 && at-c.entries[0].at >= l.cfg.logAge/parts
}

// trim drops the oldest chunks until the log is within its bounds.
func (l *changeLog[T]) trim(now time.Duration) {
	for c := l.first; c != nil && (l.bytes > l.cfg.logBytes || l.cfg.expired(c.last().at, now)); c = l.first {
		l.start, l.ambiguous = c.last().Version, false
		l.bytes -= c.bytes
		l.first = c.next
	}
	if l.first == nil {
		l.last = nil
	}
}

func (c *config[T]) expired(at, now time.Duration) bool { return c.logAge > 0 && now-at > c.logAge }

func (l *changeLog[T]) view() history[T] {
	h := history[T]{start: l.start, ambiguous: l.ambiguous, first: l.first, last: l.last}
	if l.last != nil {
		h.lastN = l.last.n
	}
	return h
}

// Since returns the changes after a version, oldest first. It returns an error that wraps ErrGone if the log lacks
// some of them or the version is not a number. There are none after the store's own version or a later one, unless
// more than one state had that version, as can happen when changes are coalesced.
//
// The changes are those at the time of the call, however late they are read.
func (r *Reader[T]) Since(v object.Version) (iter.Seq[LogEntry[T]], error) {
	version := r.Version() // read before the log, which is then at least as new
	h, cfg := r.sh.history.Load(), r.sh.cfg
	order, ok := v.Compare(h.start)
	gone := order < 0 || order == 0 && h.ambiguous
	if order, ok := v.Compare(version); ok && order >= 0 && !gone {
		return func(func(LogEntry[T]) bool) {}, nil
	}
	if cfg.logBytes <= 0 || !v.Ordered() || !ok || gone {
		return nil, fmt.Errorf("read the changes since version %q: %w; take a snapshot and continue from its version",
			v, ErrGone)
	}
	now := time.Since(cfg.born)
	c, i := h.after(v)
	if c != nil && cfg.expired(c.entries[i].at, now) {
		return nil, fmt.Errorf("read the changes since version %q, older than %v: %w; take a snapshot and continue from "+
			"its version", v, cfg.logAge, ErrGone)
	}
	return func(yield func(LogEntry[T]) bool) {
		for c, i := c, i; c != nil; c, i = h.next(c), 0 {
			for ; i < h.len(c); i++ {
				if !yield(c.entries[i].LogEntry) {
					return
				}
			}
		}
	}, nil
}

// after returns the first entry after a version.
func (h *history[T]) after(v object.Version) (*logChunk[T], int) {
	for c := h.first; c != nil; c = h.next(c) {
		n := h.len(c)
		if !v.Before(c.entries[n-1].Version) {
			continue
		}
		for i := range n {
			if v.Before(c.entries[i].Version) {
				return c, i
			}
		}
	}
	return nil, 0
}

// len and next read a chunk's own fields only if the writer no longer changes them.
func (h *history[T]) len(c *logChunk[T]) int {
	if c == h.last {
		return h.lastN
	}
	return c.n
}

func (h *history[T]) next(c *logChunk[T]) *logChunk[T] {
	if c == h.last {
		return nil
	}
	return c.next
}
