package reflector

import "time"

const (
	// grace is how much longer than requested a watch may last before it counts as dead.
	grace = 30 * time.Second
	// missedBookmarks is the number of bookmarks that a stream may miss before it counts as dead.
	missedBookmarks = 3
	// minInterval is the shortest interval between bookmarks that limit assumes. An API
	// server sends one every minute. If two arrive closer together, the second one
	// announces the end of the watch or repeats the first.
	minInterval = time.Minute
)

// heartbeat learns how often a source sends bookmarks, so that a dead stream is detected by
// its missing bookmarks, long before its timeout.
//
// A limit that is too short costs at most one stream. The silence at the end of a stream
// counts as an interval however the stream ended, so closing a stream because it was silent
// raises the next limit to more than three times that silence. The known interval decreases
// only after a stream that lasted at least that long.
type heartbeat struct {
	opened  time.Time     // when the stream began to send changes
	last    time.Time     // when it last sent a bookmark, or opened
	longest time.Duration // the longest interval of this stream; 0 before its first bookmark
	known   time.Duration // the longest interval of the streams before; 0 if none sent a bookmark
}

// open is called when a stream begins to send changes.
func (b *heartbeat) open(now time.Time) {
	b.opened, b.last, b.longest = now, now, 0
}

// bookmark is called when the stream has sent a bookmark.
func (b *heartbeat) bookmark(now time.Time) {
	b.longest = max(b.longest, now.Sub(b.last), 1)
	b.last = now
}

// close is called when the stream has ended or was closed.
func (b *heartbeat) close(now time.Time) {
	if b.opened.IsZero() || b.known == 0 && b.longest == 0 {
		return // there was no stream, or no bookmark yet
	}
	b.longest = max(b.longest, now.Sub(b.last))
	if now.Sub(b.opened) >= b.known {
		b.known = b.longest
	}
	b.known = max(b.known, b.longest)
	b.opened = time.Time{}
}

// limit returns how long a stream with the given timeout may be silent.
func (b *heartbeat) limit(timeout time.Duration) time.Duration {
	end := timeout + grace
	interval := max(b.known, b.longest)
	if interval == 0 {
		return end
	}
	return min(end, missedBookmarks*max(interval, minInterval)+grace)
}
