//go:build !race

package disk

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

// What a Disk keeps in memory: pebble's cache and memtables, and a few bytes for each object. 20,000 objects, and
// 100,000 with MIRADOR_NIGHTLY.
func TestMemoryIsBounded(t *testing.T) {
	n := number(20_000, 100_000)
	dir := t.TempDir()
	d := mustOpen(t, dir, Options{Logger: silent})
	beginResource(t, d, pods, ResourceOptions{History: true})
	m := newMirror(t, pods)
	b := d.NewBatch()
	key := func(i int) object.Key { return object.Key(fmt.Sprint("ns/object-with-a-usual-name-", i)) }
	for i := range n {
		b.Put(pods, m.state(t, key(i), i+1, start, jsonOf(key(i), i%50, i+1, "x"), "app=web", fmt.Sprint("n=", i%100)))
		if b.Len() == 1000 {
			mustCommit(t, b)
		}
	}
	b.Reach(pods, "1", start)
	mustCommit(t, b)
	mustClose(t, d)
	again := m.state(t, key(0), n+1, start, jsonOf(key(0), 0, n+1, "y"), "app=web")
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before := heap()
	d = mustOpen(t, dir, Options{Logger: silent})
	b = d.NewBatch()
	b.Put(pods, again)
	mustCommit(t, b)
	used := heap() - before
	metrics := d.engine.db.Metrics()
	pebble := metrics.BlockCache.Size + int64(metrics.MemTable.Size+metrics.MemTable.ZombieSize)
	t.Logf("%d KiB of heap for %d objects, %d KiB of pebble's cache and memtables", used>>10, n, pebble>>10)
	if limit := int64(4<<20 + 100*n); used > limit {
		t.Errorf("the heap has %d bytes more, at most %d are expected", used, limit)
	}
	if pebble > 32<<20 {
		t.Errorf("pebble's cache and memtables take %d bytes", pebble)
	}
	runtime.KeepAlive(m)
	mustClose(t, d)
}
