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
	// Seq is the sequence number of the commit, and At its time.
	Seq uint64
	At  time.Time
	// Indexed has the values of New in the indexes that read objects. It is nil if they are the same as those of Old.
	Indexed []IndexValues
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

// logChunk is a sequence of entries. The entries that readers can see never change; the writer appends after them.
type logChunk[T any] struct {
	entries [chunkLen]LogEntry[T]
	n       int
	bytes   int
	next    *logChunk[T]
}

func (c *logChunk[T]) last() *LogEntry[T] { return &c.entries[c.n-1] }

// history is the log as readers see it. A batch that changes it publishes a new one.
type history[T any] struct {
	start     object.Version // the log is complete after this version; "" if there is no log
	ambiguous bool           // more than one state had the version start: the log is complete only after a later one
	first     *logChunk[T]
	last      *logChunk[T]
	lastN     int // number of entries of last

	version     object.Version // of the store after the newest commit
	seq         uint64         // of the newest commit
	completeSeq uint64         // the log has every change of the commits after this one
}

// changeLog is the writer's side of the log.
type changeLog[T any] struct {
	cfg       *config[T]
	start     object.Version
	ambiguous bool // more than one state had the version start
	first     *logChunk[T]
	last      *logChunk[T]
	bytes     int

	seq         uint64 // of the commit that is being logged
	completeSeq uint64 // the log has every change of the commits after this one
}

// lacks states that the log does not have all changes of this commit.
func (l *changeLog[T]) lacks() { l.completeSeq = l.seq }

// end drops all entries. The log starts again at a version or, if start is "", at the next one.
func (l *changeLog[T]) end(start object.Version) {
	l.lacks()
	l.ambiguous = l.ambiguous && start == l.start
	l.start, l.first, l.last, l.bytes = start, nil, nil, 0
}

// append adds a change. A change whose version is not after the log's start belongs to the start and is not kept,
// because no caller of Since can ask for it.
func (l *changeLog[T]) append(next *change[T], at time.Time) {
	if l.start == "" {
		l.start = next.version
	}
	if l.cfg.logBytes <= 0 || !l.start.Before(next.version) {
		l.lacks()
		return
	}
	cost := entryCost
	if next.old != nil {
		cost += next.old.Size
	}
	if next.now != nil {
		cost += next.now.Size
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
	c.entries[c.n] = LogEntry[T]{next.version, next.key, next.old.entry(), next.now.entry(), l.seq, at,
		next.indexed}
	c.n++
	c.bytes += cost
	l.bytes += cost
}

func (l *changeLog[T]) closed(c *logChunk[T], at time.Time) bool {
	return c.n == chunkLen || c.bytes >= l.cfg.logBytes/parts ||
		l.cfg.logAge > 0 && at.Sub(c.entries[0].At) >= l.cfg.logAge/parts
}

// trim drops the oldest chunks until the log is within its bounds.
func (l *changeLog[T]) trim(now time.Time) {
	for c := l.first; c != nil && (l.bytes > l.cfg.logBytes || l.cfg.expired(c.last().At, now)); c = l.first {
		l.start, l.ambiguous = c.last().Version, false
		l.completeSeq = max(l.completeSeq, c.last().Seq)
		l.bytes -= c.bytes
		l.first = c.next
	}
	if l.first == nil {
		l.last = nil
	}
}

func (c *config[T]) expired(at, now time.Time) bool { return c.logAge > 0 && now.Sub(at) > c.logAge }

func (l *changeLog[T]) view(version object.Version) history[T] {
	h := history[T]{start: l.start, ambiguous: l.ambiguous, first: l.first, last: l.last}
	if l.cfg.logBytes > 0 {
		h.version, h.seq, h.completeSeq = version, l.seq, l.completeSeq
	}
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
	c, i := h.after(v)
	if c != nil && cfg.expired(c.entries[i].At, time.Now()) {
		return nil, fmt.Errorf("read the changes since version %q, older than %v: %w; take a snapshot and continue from "+
			"its version", v, cfg.logAge, ErrGone)
	}
	return h.from(c, i), nil
}

// from yields the entries from one on.
func (h *history[T]) from(c *logChunk[T], i int) iter.Seq[LogEntry[T]] {
	return func(yield func(LogEntry[T]) bool) {
		for c, i := c, i; c != nil; c, i = h.next(c), 0 {
			for ; i < h.len(c); i++ {
				if !yield(c.entries[i]) {
					return
				}
			}
		}
	}
}

// Commits are the changes of a store after one commit, up to another.
type Commits[T any] struct {
	Changes iter.Seq[LogEntry[T]] // oldest first
	Seq     uint64                // the sequence number of the last commit
	Version object.Version        // the store's version after it
}

// After returns the changes of the commits after a sequence number. It returns an error that wraps ErrGone if the log
// lacks some of them, also if the store has not reached that number. Unlike Since it does not depend on versions: it
// misses no change if a source repeats or resets its versions. Code that follows a store with it begins with a snapshot
// and its sequence number, and takes another snapshot after an error.
func (r *Reader[T]) After(seq uint64) (Commits[T], error) {
	h := r.sh.history.Load()
	if seq < h.completeSeq || seq > h.seq || r.sh.cfg.logBytes <= 0 {
		return Commits[T]{}, fmt.Errorf("read the changes after commit %d: %w; take a snapshot and continue from its "+
			"sequence number", seq, ErrGone)
	}
	c, i := h.afterCommit(seq)
	return Commits[T]{h.from(c, i), h.seq, h.version}, nil
}

// afterCommit returns the first entry after a commit.
func (h *history[T]) afterCommit(seq uint64) (*logChunk[T], int) {
	for c := h.first; c != nil; c = h.next(c) {
		n := h.len(c)
		if c.entries[n-1].Seq <= seq {
			continue
		}
		for i := range n {
			if c.entries[i].Seq > seq {
				return c, i
			}
		}
	}
	return nil, 0
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
