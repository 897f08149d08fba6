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
