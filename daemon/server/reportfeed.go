package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mirador-k8s/mirador/daemon/access"
)

const (
	// reportEvery is how often the report is made, once for all followers.
	reportEvery = time.Second
	// reportShare is the largest share of the time that making reports may take: with many clusters, one takes long, and
	// they are made less often.
	reportShare = 1.0 / 20
	// reportHeartbeat is the longest time without a line, even if nothing has changed.
	reportHeartbeat = 10 * time.Second
	// reportLines is how many lines a follower may be behind. A follower that is further behind gets the whole report.
	reportLines = 16
)

// reportFeed has the lines of /clusters?watch=true for all followers. Each line is made once, by the first follower
// that asks when the next report is due. Without followers, nothing is made or kept.
type reportFeed struct {
	report func(now time.Time) Report

	mu        sync.Mutex
	followers int
	last      Report
	made      time.Time           // when last was made
	every     time.Duration       // the time from one report to the next
	beat      time.Time           // time of the last heartbeat line
	number    uint64              // of the newest line
	lines     [reportLines][]byte // the newest lines, by their number modulo reportLines
	whole     []byte              // last as a line; nil until a follower needs it
}

// join adds a follower. The caller must call leave.
func (f *reportFeed) join() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers++
}

func (f *reportFeed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers--; f.followers == 0 {
		f.last, f.made, f.lines, f.whole = Report{}, time.Time{}, [reportLines][]byte{}, nil
		f.number += reportLines // older lines are gone
	}
}

// next returns the lines after number seen, which is 0 for a new follower, and the number of the newest line. The
// lines are shared and must not be changed. They are empty if nothing has changed.
func (f *reportFeed) next(seen uint64) (lines []byte, number uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if now.Sub(f.made) >= f.due() {
		if err := f.refresh(now); err != nil {
			return nil, 0, err
		}
	}
	if seen == 0 || f.number-seen > reportLines {
		if f.whole == nil {
			if f.whole, err = encodeLine(&ReportUpdate{Now: f.last.Now, Memory: f.last.Memory, Disk: f.last.Disk, Whole: true,
				Clusters: f.last.Clusters}); err != nil {
				return nil, 0, err
			}
		}
		return f.whole, f.number, nil
	}
	if f.number-seen == 1 {
		return f.lines[f.number%reportLines], f.number, nil
	}
	for n := seen + 1; n <= f.number; n++ {
		lines = append(lines, f.lines[n%reportLines]...)
	}
	return lines, f.number, nil
}

// due is the time from one report to the next. Followers tick at different times: with a little less than the period,
// one of them makes a report in each.
func (f *reportFeed) due() time.Duration { return f.every * 9 / 10 }

// refresh makes a report, and the next line if something has changed. The lock is held.
func (f *reportFeed) refresh(now time.Time) error {
	report := f.report(now)
	share := time.Duration(float64(time.Since(now)) / reportShare)
	f.every = min(max(reportEvery, share), reportHeartbeat-reportEvery)
	first := f.made.IsZero()
	update, news := report.since(&f.last)
	f.last, f.made, f.whole = report, now, nil
	if first {
		f.number++ // every follower gets the whole report first
		f.beat = now
		return nil
	}
	// A follower that asks just before the next report is due makes it one tick later.
	if now.Add(f.due()+reportEvery).Sub(f.beat) > reportHeartbeat {
		update.LastHeard, news, f.beat = report.lastHeard(), true, now
	}
	if !news {
		return nil
	}
	line, err := encodeLine(&update)
	if err != nil {
		return err
	}
	f.number++
	f.lines[f.number%reportLines] = line
	return nil
}

func encodeLine(u *ReportUpdate) ([]byte, error) {
	b, err := json.Marshal(u)
	if err != nil {
		return nil, err
	}
	return slices.Clip(append(b, '\n')), nil
}

// followReport sends the report, and then a line for each change.
func (s *Server) followReport(w http.ResponseWriter, r *http.Request) error {
	if p, err := clusterPageOf(r); err != nil {
		return err
	} else if p != wholeReport {
		return badRequest("a watch of /clusters has all clusters and their resources; leave limit, continue and " +
			"resources out")
	}
	open, err := s.takeWatch(r)
	if err != nil {
		return err
	}
	defer open.close()
	held := s.memory.open(clientOf(r))
	defer held.close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	rights := s.revocations.add(&watchRights{credentials: credentialsOfWatch(r), allowed: func() bool {
		return s.stillImpersonates(r) && s.decide(r, access.Daemon, daemonAttributes("watch", "")).Allowed
	}})
	defer rights.close()
	rights.onEnd(cancel)
	s.reports.join()
	defer s.reports.leave()
	lines, seen, err := s.reports.next(0)
	if err == nil {
		err = held.set(int64(len(lines)))
	}
	if err != nil {
		return err
	}
	st := &stream{w: w, ctl: http.NewResponseController(w)}
	st.writeHeader()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		if st.write(lines) != nil {
			return nil
		}
		lines = nil
		held.set(0) // cannot fail: the grant shrinks
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		case <-s.stopping:
			return nil
		}
		if lines, seen, err = s.reports.next(seen); err != nil || held.set(int64(len(lines))) != nil {
			return nil // the answer has begun, so it can only end; the follower reconnects
		}
	}
}
