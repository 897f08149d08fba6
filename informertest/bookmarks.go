package informertest

import "time"

// apiServerPeriod is how often an API server sends bookmarks.
const apiServerPeriod = time.Minute

// bookmarkTimes computes when an API server sends the bookmarks of one watch: every minute, up to a second late
// because the API server checks once a second which watches are due, and two seconds before the watch ends. In every
// other watch the last bookmark is sent twice. period stands for the minute, and all other intervals scale with it.
// Nothing is random: the same watch has the same bookmarks.
type bookmarkTimes struct {
	period time.Duration
	end    time.Time // when the watch ends
	sent   int
	last   int // how many were sent shortly before the end
}

// after returns the time of the bookmark that follows one at now, or false if there is none.
func (b *bookmarkTimes) after(now time.Time) (time.Time, bool) {
	if b.period <= 0 {
		return time.Time{}, false
	}
	beforeEnd := b.end.Add(-b.period / 30)
	late := 200 + time.Duration(b.sent*137%701) // in thousandths of a sixtieth of the period
	next := now.Add(b.period + late*b.period/60_000)
	b.sent++
	switch {
	case !beforeEnd.Before(now) && b.last == 0:
		if next.Before(beforeEnd) {
			return next, true
		}
		b.last++
		return beforeEnd, true
	case b.last == 1 && b.end.Unix()%2 == 0:
		b.last++
		return now.Add(b.period / 6000), true
	}
	return time.Time{}, false
}

// bookmarkClock is a timer that fires for each bookmark of a watch.
type bookmarkClock struct {
	times bookmarkTimes
	timer *time.Timer
}

func newBookmarkClock(period, timeout time.Duration) *bookmarkClock {
	now := time.Now()
	c := &bookmarkClock{times: bookmarkTimes{period: period, end: now.Add(timeout)}, timer: time.NewTimer(time.Hour)}
	c.timer.Stop()
	c.next()
	return c
}

// next sets the timer for the bookmark that follows one sent now.
func (c *bookmarkClock) next() {
	now := time.Now()
	if at, ok := c.times.after(now); ok {
		c.timer.Reset(at.Sub(now))
	}
}
