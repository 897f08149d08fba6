package disk

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/object"
)

// benchPods is the number of pods that the benchmarks of reads begin with. Each app has 100 of them.
const benchPods = 100_000

// benchFolder returns a folder with 100,000 pods and changes random ones: they are spread over a day, so that the
// history has as many segments as it can have.
func benchFolder(b *testing.B, changes int) *Disk {
	now := start
	d := mustOpen(b, b.TempDir(), Options{now: func() time.Time { return now }, HistoryAge: 24 * time.Hour})
	beginResource(b, d, pods, ResourceOptions{History: true})
	m, set := newMirror(b, pods), testpods.New(1, 1000)
	batch := d.NewBatch()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range benchPods + changes {
		n := i
		if i >= benchPods {
			n = r.IntN(benchPods)
			now = now.Add(24 * time.Hour / time.Duration(changes))
		}
		batch.Put(pods, m.changedPod(b, set, n, max(0, i-benchPods), 2*i+1, now))
		if batch.Len() >= 500 || i == benchPods+changes-1 {
			if i >= benchPods-500 {
				batch.Reach(pods, "1000000", now)
			}
			mustCommit(b, batch)
		}
	}
	if err := d.engine.db.Flush(); err != nil {
		b.Fatal(err)
	}
	settle(d)
	return d
}

// count reads all states.
func count(b *testing.B, r *Restored, err error) (objects, labels int) {
	if err != nil {
		b.Fatal(err)
	}
	for s, err := range r.States() {
		if err != nil {
			b.Fatal(err)
		}
		objects++
		labels += len(s.Labels)
	}
	return objects, labels
}

// reportCPU reports the CPU of an operation, which other processes on the machine change less than its time.
func reportCPU(b *testing.B, from time.Duration) {
	b.ReportMetric(float64((cpuTime()-from).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// BenchmarkRestore reads 100,000 pods with their labels.
func BenchmarkRestore(b *testing.B) {
	d := benchFolder(b, 0)
	defer mustClose(b, d)
	from := cpuTime()
	for b.Loop() {
		r, err := d.Restore(pods)
		if objects, labels := count(b, r, err); objects != benchPods || labels != 2*benchPods {
			b.Fatalf("read %d objects with %d labels", objects, labels)
		}
	}
	reportCPU(b, from)
}

// BenchmarkAtLabel reads the 100 pods of an app at a random moment of a day with 200,000 changes.
func BenchmarkAtLabel(b *testing.B) {
	d := benchFolder(b, 200_000)
	defer mustClose(b, d)
	r := rand.New(rand.NewPCG(3, 4))
	from := cpuTime()
	for b.Loop() {
		at := start.Add(time.Second + time.Duration(r.Int64N(int64(24*time.Hour))))
		past, err := d.At(pods, at, Filter{Label: "app=417"})
		if objects, _ := count(b, past, err); objects != 100 {
			b.Fatalf("read %d objects", objects)
		}
	}
	reportCPU(b, from)
}

// BenchmarkHistory reads the history of one pod.
func BenchmarkHistory(b *testing.B) {
	d := benchFolder(b, 200_000)
	defer mustClose(b, d)
	set, r := testpods.New(1, 1000), rand.New(rand.NewPCG(3, 4))
	from, changes := cpuTime(), 0
	for b.Loop() {
		for _, err := range d.History(pods, Filter{Key: object.Key(set.Key(r.IntN(benchPods)))}, start, time.Time{}) {
			if err != nil {
				b.Fatal(err)
			}
			changes++
		}
	}
	if changes < b.N {
		b.Fatalf("%d changes of %d pods", changes, b.N)
	}
	reportCPU(b, from)
}
