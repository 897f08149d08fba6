package fleet

import (
	"fmt"
	"sync"
)

// fleetUsage is the memory usage of all mirrors of a fleet. Its lock is taken after that of a clusterUsage, and two of
// the latter are never held together.
type fleetUsage struct {
	max int64 // bytes; 0 is no limit

	mu       sync.Mutex
	bytes    int64
	clusters map[*clusterUsage]int64 // their bytes
}

func newFleetUsage(max int64) *fleetUsage {
	return &fleetUsage{max: max, clusters: map[*clusterUsage]int64{}}
}

// add changes the usage of a cluster.
func (f *fleetUsage) add(l *clusterUsage, bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.change(l, bytes)
}

// addFirst is add for a mirror that is not visible yet. If there is no room for it, addFirst changes nothing and
// returns an error. It leaves a twentieth of the limit to mirrors that grow, so that a resource that was dropped does
// not come back only to be dropped again.
func (f *fleetUsage) addFirst(l *clusterUsage, bytes int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.max > 0 && f.bytes+bytes > f.max-f.max/20 {
		return fmt.Errorf("%w: there is no room for it, because all clusters together may take %d bytes of memory; raise "+
			"the limit with --max-fleet-bytes, or leave resources out with --exclude", errLimit, f.max)
	}
	f.change(l, bytes)
	return nil
}

// change changes the usage of a cluster. The lock is held.
func (f *fleetUsage) change(l *clusterUsage, bytes int64) {
	f.bytes += bytes
	if f.clusters[l] += bytes; f.clusters[l] == 0 {
		delete(f.clusters, l)
	}
}

func (f *fleetUsage) total() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes
}

// relieve drops a mirror if all mirrors together exceed the limit: the largest one of the cluster that takes most. So a
// cluster that takes no more than its even share of the limit loses nothing because of the others. No lock is held.
func (f *fleetUsage) relieve() {
	l := f.largestIfOver()
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mirrors) == 0 || f.total() <= f.max {
		return // a cluster has left, or another reader has dropped a mirror
	}
	l.largest(func(g *mirrorUsage) int64 { return g.bytes }).
		drop(fmt.Errorf("%w: all clusters together take more than %d bytes of memory, and most for this one and this "+
			"resource; raise the limit with --max-fleet-bytes, or leave it out with --exclude", errLimit, f.max))
}

// largestIfOver returns the cluster that takes most if the limit is exceeded, or else nil.
func (f *fleetUsage) largestIfOver() (largest *clusterUsage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.max == 0 || f.bytes <= f.max {
		return nil
	}
	for l, bytes := range f.clusters {
		if largest == nil || bytes > f.clusters[largest] {
			largest = l
		}
	}
	return largest
}
