package fleet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// Clusters join, leave and are read at the same time, for the race detector. At the end the set
// has the clusters that joined last, and no watch of another cluster is open.
func TestClustersJoinAndLeaveWhileTheyAreRead(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods", "nodes", "deployments"}}, func(w *world) {
		s, cfg := w.server()
		create(t, s, pod("a", "one"), pod("b", "two"))
		over, stop := context.WithCancel(context.Background())
		var movers, readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for over.Err() == nil {
					for _, c := range w.f.Clusters() {
						c.Health()
						for _, r := range c.Resources() {
							for o := range r.Snapshot().ByIndex(fleet.NamespaceIndex, "a") {
								_ = len(o.Bytes)
							}
						}
					}
					select {
					case <-w.f.Changed():
					case <-time.After(10 * time.Millisecond):
					}
				}
			})
		}
		for i := range 4 {
			name := fmt.Sprintf("c%d", i)
			seed := rand.New(rand.NewPCG(1, uint64(i)))
			movers.Go(func() {
				for range 10 {
					if err := w.f.Join(name, cfg, fleet.Origin{}); err != nil {
						t.Error(err)
					}
					<-time.After(time.Duration(seed.IntN(300)) * time.Millisecond)
					if err := w.f.Leave(over, name); err != nil {
						t.Error(err)
					}
				}
			})
		}
		movers.Wait()
		synctest.Wait()
		if n := s.OpenWatches(); n != 0 || len(w.f.Clusters()) != 0 {
			t.Errorf("%d watches and %d clusters are left", n, len(w.f.Clusters()))
		}
		w.join("last", cfg)
		w.resource(w.f.Clusters()[0], podsGVR)
		stop()
		readers.Wait()
	})
}
