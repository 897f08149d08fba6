package store

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// The stores of the benchmarks have 50,000 objects, an index with 100 values of 500 objects each, and one with 5,000
// values of 10 objects each.
const benchObjects = 50_000

type benchObject struct {
	group, owner []string
	n            int
}

type benchStore struct {
	w       *Writer[*benchObject]
	r       *Reader[*benchObject]
	keys    []object.Key
	entries []object.Item[*benchObject]
}

func newBenchStore(b *testing.B) *benchStore {
	b.Helper()
	w, err := New(Options[*benchObject]{Indexes: map[string]IndexFunc[*benchObject]{
		"group": func(o *benchObject) ([]string, error) { return o.group, nil },
		"owner": func(o *benchObject) ([]string, error) { return o.owner, nil },
	}})
	if err != nil {
		b.Fatal(err)
	}
	s := &benchStore{w: w, r: w.Reader()}
	for i := range benchObjects {
		key := object.Key(fmt.Sprintf("namespace-%d/object-%d", i%100, i))
		s.keys = append(s.keys, object.Key(strings.Clone(string(key)))) // a reader's key is another string than the store's
		s.entries = append(s.entries, object.Item[*benchObject]{
			Key: key, Version: object.Version(strconv.Itoa(i + 1)), UID: strconv.Itoa(i), Size: 1000,
			Value: &benchObject{group: []string{fmt.Sprint("group-", i%100)},
				owner: []string{fmt.Sprint("owner-", i%5000)}, n: i},
		})
	}
	return s
}

func (s *benchStore) fill() *benchStore {
	s.w.BeginReplace()
	for _, e := range s.entries {
		s.w.Stage(e)
	}
	s.w.CommitReplace("50000", nil)
	return s
}

// scattered walks the objects in an order that defeats the processor's caches.
func scattered(i int) int { return i * 7919 % benchObjects }

func BenchmarkGet(b *testing.B) {
	s := newBenchStore(b).fill()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, ok := s.r.Get(s.keys[scattered(i)]); !ok {
			b.Fatal("missing")
		}
	}
}

func BenchmarkSnapshotGet(b *testing.B) {
	s := newBenchStore(b).fill()
	snap := s.r.Snapshot()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, ok := snap.Get(s.keys[scattered(i)]); !ok {
			b.Fatal("missing")
		}
	}
}

func BenchmarkPut(b *testing.B) {
	for _, size := range []int{1, 100} {
		for _, cut := range []bool{false, true} {
			b.Run(fmt.Sprintf("by=%d/snapshotPerBatch=%v", size, cut), func(b *testing.B) {
				s := newBenchStore(b).fill()
				b.ReportAllocs()
				for i := 0; b.Loop(); {
					s.w.Begin()
					for range size {
						s.w.Put(s.entries[scattered(i)])
						i++
					}
					s.w.Commit()
					if cut {
						s.r.Snapshot()
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/put")
			})
		}
	}
}

// BenchmarkChurn puts a new object and deletes the oldest. The longest batches are those that rebuild the table.
func BenchmarkChurn(b *testing.B) {
	s := newBenchStore(b).fill()
	keys := make([]object.Key, 2*benchObjects)
	copy(keys, s.keys)
	for i := range benchObjects {
		keys[benchObjects+i] = s.keys[i] + "-new"
	}
	var longest time.Duration
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		it := s.entries[i%benchObjects]
		it.Key = keys[(i+benchObjects)%len(keys)]
		began := time.Now()
		s.w.Begin()
		s.w.Put(it)
		s.w.Delete(keys[i%len(keys)], "")
		s.w.Commit()
		longest = max(longest, time.Since(began))
	}
	b.ReportMetric(float64(longest.Microseconds()), "longest-us")
}

func BenchmarkByIndex500Of50k(b *testing.B) {
	snap := newBenchStore(b).fill().r.Snapshot()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n := 0
		for o := range snap.ByIndex("group", groups[i%100]) {
			n += o.n & 1
			n++
		}
		if n < 500 {
			b.Fatal(n)
		}
	}
}

var groups = func() (all []string) {
	for i := range 100 {
		all = append(all, fmt.Sprint("group-", i))
	}
	return all
}()

func BenchmarkIterate50k(b *testing.B) {
	snap := newBenchStore(b).fill().r.Snapshot()
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			for range snap.All() {
				n++
			}
			if n != benchObjects {
				b.Fatal(n)
			}
		}
	})
	b.Run("objects", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			for range snap.Objects() {
				n++
			}
			if n != benchObjects {
				b.Fatal(n)
			}
		}
	})
	b.Run("slice", func(b *testing.B) {
		for b.Loop() {
			all := make([]*benchObject, 0, snap.Len())
			for o := range snap.Objects() {
				all = append(all, o)
			}
		}
	})
	b.Run("ordered", func(b *testing.B) {
		for b.Loop() {
			for range snap.Ordered() {
			}
		}
	})
}

// BenchmarkOrder measures the first ordered read of a snapshot.
func BenchmarkOrder(b *testing.B) {
	s := newBenchStore(b).fill()
	for b.Loop() {
		s.w.Begin()
		s.w.Commit()
		s.r.Snapshot().Page("", 1)
	}
}

func BenchmarkWriterBeside8IteratingReaders(b *testing.B) {
	s := newBenchStore(b).fill()
	var done atomic.Bool
	var passes atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for !done.Load() {
				for range s.r.Snapshot().All() {
				}
				passes.Add(1)
			}
		})
	}
	for i := 0; b.Loop(); i++ {
		s.w.Begin()
		s.w.Put(s.entries[scattered(i)])
		s.w.Commit()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "puts/s")
	b.ReportMetric(float64(passes.Load())/b.Elapsed().Seconds(), "passes/s")
	done.Store(true)
	wg.Wait()
}

func BenchmarkFirstList(b *testing.B) {
	s := newBenchStore(b)
	for b.Loop() {
		s.fill()
		s.w.Reset()
	}
}

func BenchmarkRelistUnchanged(b *testing.B) {
	s := newBenchStore(b).fill()
	for b.Loop() {
		s.w.BeginReplace()
		for i := range s.entries {
			s.w.Seen(s.entries[i].Key, s.entries[i].Version, s.entries[i].UID)
		}
		s.w.CommitReplace("50000", nil)
	}
}

// BenchmarkMemory reports the memory that the store takes in addition to the objects.
func BenchmarkMemory(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		s := newBenchStore(b)
		before := heap()
		s.fill()
		b.ReportMetric(float64(heap()-before)/benchObjects, "B/object")
		runtime.KeepAlive(s)
	}
}
