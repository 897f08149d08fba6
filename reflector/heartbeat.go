package reflector

import "time"

const (
	// grace is how much longer than asked for a watch may last before it counts as
	// dead.
	grace = 30 * time.Second
	// missedBookmarks is how many bookmarks a stream may miss before it counts as dead.
	missedBookmarks = 3
	// leastInterval is the shortest interval between bookmarks that a limit is made of.
	// An API server sends them every minute; when two come closer together, one of them
	// announces the end of the watch or was sent twice.
	leastInterval = time.Minute
)

// heartbeat learns how often a source sends bookmarks, so that a stream that should
// have sent some and did not is known to be dead long before its timeout.
//
// A wrong guess heals after one stream. The silence at the end of a stream counts as an
// interval however the stream ended, so a stream that was closed for its silence raises
// the next limit to more than three times that silence. What is known goes down only by
// a stream that lasted long enough to show an interval as long as that.
type heartbeat struct {
	opened  time.Time     // when the stream began to give changes
	last    time.Time     // when it last sent a bookmark
	longest time.Duration // the longest interval that it has shown; 0 before its first bookmark
	known   time.Duration // the longest interval of the streams before; 0 while none sent a bookmark
}

// open is called when a stream begins to give changes.
func (b *heartbeat) open(now time.Time) {
	b.opened, b.last, b.longest = now, now, 0
}

// bookmark is called when the stream has sent a bookmark.
func (b *heartbeat) bookmark(now time.Time) {
	b.longest = max(b.longest, now.Sub(b.last), 1)
	b.last = now
}

// over is called when the stream has ended or was closed.
func (b *heartbeat) over(now time.Time) {
	if b.opened.IsZero() || b.known == 0 && b.longest == 0 {
		return // no stream, or nothing is known of bookmarks yet
	}
	b.longest = max(b.longest, now.Sub(b.last))
	if now.Sub(b.opened) >= b.known {
		b.known = b.longest
	}
	b.known = max(b.known, b.longest)
	b.opened = time.Time{}
}

// limit is how long a stream may be silent that was asked to last for timeout.
func (b *heartbeat) limit(timeout time.Duration) time.Duration {
	end := timeout + grace
	interval := max(b.known, b.longest)
	if interval == 0 {
		return end
	}
	return min(end, missedBookmarks*max(interval, leastInterval)+grace)
}
