package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/disk"
)

// Nothing waits for a state that turns out to be missing or damaged, however long the cluster takes to send it again.
func TestAStateThatCannotBeReadIsNotWaitedFor(t *testing.T) {
	d, err := disk.Open("data", disk.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	synctest.Test(t, func(t *testing.T) {
		gvr := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		r := &Resource{inf: &mirror[*Object]{over: make(chan struct{})}, reading: newReading()}
		c := &Cluster{restoring: make(chan struct{})}
		c.resources.Store(&resourceSet{byName: map[schema.GroupVersionResource]*Resource{gvr: r}, sorted: []*Resource{r}})
		f := &Fleet{clusters: map[string]*Cluster{"eu": c}}

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan struct{}, 2)
		go func() { c.WaitRestored(ctx, gvr); done <- struct{}{} }()
		go func() { f.WaitRestored(ctx); done <- struct{}{} }()
		synctest.Wait()
		close(c.restoring)
		synctest.Wait()
		if len(done) > 0 {
			t.Error("the state was not waited for while it was being read")
		}
		for _, err := range (&savedCluster{disk: d}).entries(&disk.StoredResource{Resource: disk.Resource{Cluster: "eu",
			Version: "v1", Resource: "pods"}}, r.reading) {
			if err == nil {
				t.Error("the disk has a state")
			}
		}
		synctest.Wait()
		if len(done) != 2 || ctx.Err() != nil {
			t.Errorf("%d of 2 waits have ended; %v", len(done), ctx.Err())
		}
	})
}
