package disk

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/object"
)

// podState returns a state of a pod of the set.
func (m *mirror) podState(t testing.TB, set *testpods.Set, i, change, version int) State {
	t.Helper()
	pod := set.Pod(i)
	if change > 0 {
		pod = set.Changed(pod, change)
	}
	pod.ResourceVersion = fmt.Sprint(version)
	encoded, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return m.state(t, object.Key(set.Key(i)), version, start, encoded, fmt.Sprint("app=", i%1000), "tier=web")
}

// fill stores pods in batches and says that the resource has reached their version.
func fill(t testing.TB, d *Disk, m *mirror, set *testpods.Set, n int) {
	t.Helper()
	b := d.NewBatch()
	for i := range n {
		b.Put(pods, m.podState(t, set, i, 0, i+1))
		if b.Len() == 500 {
			mustCommit(t, b)
		}
	}
	b.Reach(pods, "1000000", start)
	mustCommit(t, b)
}

func BenchmarkRestore(b *testing.B) {
	const n = 100_000
	d := mustOpen(b, b.TempDir(), Options{})
	defer mustClose(b, d)
	beginResource(b, d, pods, ResourceOptions{History: true})
	fill(b, d, newMirror(b, pods), testpods.New(1, 1000), n)
	for b.Loop() {
		r, err := d.Restore(pods)
		if err != nil {
			b.Fatal(err)
		}
		got, labels := 0, 0
		for s, err := range r.States() {
			if err != nil {
				b.Fatal(err)
			}
			got++
			labels += len(s.Labels)
		}
		if got != n || labels != 2*n {
			b.Fatalf("read %d objects with %d labels", got, labels)
		}
	}
}
