package server

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAReportThatTakesLongIsMadeLessOften(t *testing.T) {
	for takes, want := range map[time.Duration]int{0: 120, 250 * time.Millisecond: 24, 5 * time.Second: 12} {
		synctest.Test(t, func(t *testing.T) {
			made := 0
			feed := reportFeed{report: func(now time.Time) Report {
				made++
				time.Sleep(takes)
				return Report{Now: now}
			}}
			feed.join()
			defer feed.leave()
			tick := time.NewTicker(reportEvery)
			defer tick.Stop()
			for began := time.Now(); time.Since(began) < 2*time.Minute; <-tick.C {
				if _, _, err := feed.next(0); err != nil {
					t.Fatal(err)
				}
			}
			if made < want*8/10 || made > want*12/10 {
				t.Errorf("a report that takes %s is made %d times in two minutes, want about %d", takes, made, want)
			}
		})
	}
}

func TestFollowersAreSentALineInEachHeartbeat(t *testing.T) {
	for _, takes := range []time.Duration{0, 100 * time.Millisecond, 250 * time.Millisecond, 450 * time.Millisecond,
		500 * time.Millisecond, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			feed := reportFeed{report: func(now time.Time) Report {
				time.Sleep(takes)
				return Report{Now: now}
			}}
			feed.join()
			defer feed.leave()
			_, seen, err := feed.next(0)
			tick := time.NewTicker(reportEvery)
			defer tick.Stop()
			last, longest, sent := time.Now(), time.Duration(0), 0
			for began := last; time.Since(began) < 10*time.Minute && err == nil; <-tick.C {
				var lines []byte
				if lines, seen, err = feed.next(seen); len(lines) > 0 {
					longest, sent, last = max(longest, time.Since(last)), sent+1, time.Now()
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if longest > reportHeartbeat || sent > 125 {
				t.Errorf("a report takes %s: %d lines were sent, and up to %s passed without one", takes, sent, longest)
			}
		})
	}
}
