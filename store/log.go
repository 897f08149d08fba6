package store

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// ErrGone is what Since wraps when the log does not reach back to a version: the
// caller has to read the whole state again.
var ErrGone = errors.New("the changes since this version are gone")

// LogEntry is one change of the store.
type LogEntry[T any] struct {
	// Version is the store's version at this change. It never goes back within a log.
	Version object.Version
	Key     object.Key
	// Old and New are the object before and after; nil where it was not, or is not,
	// there. Both are read-only.
	Old, New *Entry[T]
}

const (
	// entryCost is what an entry costs besides its objects.
	entryCost = 64
	// chunkLen is how many entries share an allocation.
	chunkLen = 16
	// parts is how finely the log is cut: it drops whole chunks, so a chunk takes no
	// more changes when it holds this share of the bytes or of the age.
	parts = 16
)

type logged[T any] struct {
	LogEntry[T]
	at time.Duration // since config.born
}

// logChunk is a run of entries. What readers have been shown of it never changes;
// the writer appends behind that.
type logChunk[T any] struct {
	entries [chunkLen]logged[T]
	n       int
	bytes   int
	next    *logChunk[T]
}

func (c *logChunk[T]) last() *logged[T] { return &c.entries[c.n-1] }

// history is the log as readers see it, replaced as a whole at each batch that moves it.
type history[T any] struct {
	start object.Version // the log is complete after this version; "": there is none
	vague bool           // start stands for more than one state: complete only after a later one
	first *logChunk[T]
	last  *logChunk[T]
	lastN int // entries of last that count
}

// changeLog is the writer's side of it.
type changeLog[T any] struct {
	cfg   *config[T]
	start object.Version
	vague bool // start stands for more than one state
	first *logChunk[T]
	last  *logChunk[T]
	bytes int
}

// end drops all: the log starts anew at a version, or with the next one if "".
func (l *changeLog[T]) end(start object.Version) {
	l.vague = l.vague && start == l.start
	l.start, l.first, l.last, l.bytes = start, nil, nil, 0
}

// append adds a change. One that moved the version no further than the log's
// start is part of that start and is not kept, since nobody can ask for it.
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

// trim drops what exceeds the bounds.
func (l *changeLog[T]) trim(now time.Duration) {
	for c := l.first; c != nil && (l.bytes > l.cfg.logBytes || l.cfg.expired(c.last().at, now)); c = l.first {
		l.start, l.vague = c.last().Version, false
		l.bytes -= c.bytes
		l.first = c.next
	}
	if l.first == nil {
		l.last = nil
	}
}

func (c *config[T]) expired(at, now time.Duration) bool { return c.logAge > 0 && now-at > c.logAge }

func (l *changeLog[T]) view() history[T] {
	h := history[T]{start: l.start, vague: l.vague, first: l.first, last: l.last}
	if l.last != nil {
		h.lastN = l.last.n
	}
	return h
}

// Since yields what happened after a version, oldest first. It returns an error
// that wraps ErrGone where the log does not know all of that, or where the version
// is no number. For the store's own version, or a later one, there is nothing, unless
// that version stands for more than one state, as it may while changes are coalesced.
//
// What is yielded was fixed when Since was called; it may be read at leisure.
func (r *Reader[T]) Since(v object.Version) (iter.Seq[LogEntry[T]], error) {
	version := r.Version() // before the log, which is then at least as new
	h, cfg := r.sh.history.Load(), r.sh.cfg
	order, ok := v.Compare(h.start)
	gone := order < 0 || order == 0 && h.vague
	if order, ok := v.Compare(version); ok && order >= 0 && !gone {
		return func(func(LogEntry[T]) bool) {}, nil
	}
	if cfg.logBytes <= 0 || !v.Ordered() || !ok || gone {
		return nil, fmt.Errorf("read the changes since version %q: %w; take a snapshot and go on from its version", v, ErrGone)
	}
	now := time.Since(cfg.born)
	c, i := h.after(v)
	if c != nil && cfg.expired(c.entries[i].at, now) {
		return nil, fmt.Errorf("read the changes since version %q, older than %v: %w; take a snapshot and go on from its version",
			v, cfg.logAge, ErrGone)
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

// after finds the first entry behind a version.
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

// len and next read a chunk's own fields only where the writer is done with it.
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
