package disk

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/object"
)

// changedPod returns a state of a pod after some changes: every other one ends a container, and the next one starts it.
func (m *mirror) changedPod(t testing.TB, set *testpods.Set, i, changes, version int, at time.Time) State {
	pod := set.Pod(i)
	if changes > 0 {
		pod = set.Changed(pod, version-changes%2)
	}
	if changes > 0 && changes%2 == 0 {
		pod = set.Changed(pod, version)
	}
	pod.ResourceVersion = fmt.Sprint(version)
	encoded, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return m.state(t, object.Key(set.Key(i)), version, at, encoded, fmt.Sprint("app=", i%1000), "tier=web")
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// settle waits until pebble has nothing to do in the background.
func settle(d *Disk) {
	for idle := 0; idle < 3; {
		m := d.engine.db.Metrics()
		if m.Compact.NumInProgress > 0 || m.Flush.NumInProgress > 0 {
			idle = 0
		} else {
			idle++
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// BenchmarkCommit changes random ones of 100,000 pods, 500 in a second of the folder's clock and in each batch. It
// reports the CPU of a change with everything that pebble does for it, and the bytes of the history per change. Meant
// for -benchtime=500000x: a few changes say nothing about compaction.
func BenchmarkCommit(b *testing.B) {
	n := min(100_000, max(1000, b.N/2))
	now := start
	d := mustOpen(b, b.TempDir(), Options{now: func() time.Time { return now }, HistoryAge: 24 * time.Hour})
	defer mustClose(b, d)
	beginResource(b, d, pods, ResourceOptions{History: true})
	m, set := newMirror(b, pods), testpods.New(1, 1000)
	batch := d.NewBatch()
	for i := range n {
		batch.Put(pods, m.changedPod(b, set, i, 0, i+1, now))
		if batch.Len() == 1000 {
			mustCommit(b, batch)
		}
	}
	batch.Reach(pods, "1000000", now)
	mustCommit(b, batch)
	settle(d)
	before := historyBytes(b, d)
	changes := make([]int, n)
	r := rand.New(rand.NewPCG(1, 2))
	var cpu time.Duration
	version := 1_000_000
	b.ResetTimer()
	b.StopTimer()
	for done := 0; done < b.N; {
		var states []State
		for range min(20_000, b.N-done) {
			i := r.IntN(n)
			changes[i]++
			version += 2
			now = now.Add(2 * time.Millisecond)
			states = append(states, m.changedPod(b, set, i, changes[i], version, now))
		}
		done += len(states)
		runtime.GC()
		from := cpuTime()
		b.StartTimer()
		for i, s := range states {
			batch.Put(pods, s)
			if batch.Len() == 500 || i == len(states)-1 {
				batch.Reach(pods, s.Version, s.Time)
				mustCommit(b, batch)
			}
		}
		b.StopTimer()
		settle(d)
		cpu += cpuTime() - from
	}
	metrics := d.engine.db.Metrics()
	if err := d.Compact(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-us/change")
	b.ReportMetric(float64(historyBytes(b, d)-before)/float64(b.N), "bytes/change")
	tables := metrics.Total()
	b.ReportMetric(float64(tables.TableBytesFlushed+tables.TableBytesCompacted)/float64(b.N), "written-bytes/change")
	b.ReportMetric(float64(metrics.WAL.BytesWritten)/float64(b.N), "log-bytes/change")
}

// historyBytes returns the bytes of the history in tables.
func historyBytes(t testing.TB, d *Disk) int64 {
	if err := d.engine.db.Flush(); err != nil {
		t.Fatal(err)
	}
	sizes, err := d.Sizes()
	if err != nil {
		t.Fatal(err)
	}
	return sizes[0].Resources[0].History
}
