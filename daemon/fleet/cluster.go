package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source"
)

// Cluster is one member of a fleet. All methods may be called from any goroutine, and
// none of them asks the cluster anything.
type Cluster struct {
	fleet  *Fleet
	name   string
	origin Origin
	joined time.Time
	link   *link

	cancel context.CancelFunc // nil until it is started; the fleet's lock guards it
	done   chan struct{}      // closed when everything of it has ended
	poke   chan struct{}      // what the cluster serves may have changed

	renewed chan struct{} // it is reached in another way now

	shown   atomic.Pointer[catalogue]
	docs    *documents
	version atomic.Pointer[serverVersion]

	// What follows belongs to the cluster's own goroutine.
	asks     *discovery
	served   map[schema.GroupVersionResource]metav1.APIResource // that could be mirrored
	triggers map[schema.GroupResource]*trigger

	mu       sync.Mutex
	book     condition
	state    State
	since    time.Time
	complete bool // see ClusterHealth
}

// catalogue is a cluster's set of resources. It never changes: another takes its place.
type catalogue struct {
	byName map[schema.GroupVersionResource]*Resource
	sorted []*Resource
	groups []metav1.APIGroup
}

// condition is what the cluster's goroutine knows of how it is doing.
type condition struct {
	looked  bool      // it has said once what it serves
	first   time.Time // when it did
	lookErr error     // why it did not say so the last time
	partial error     // what it could not tell then
	left    bool
}

func newCluster(f *Fleet, name string, cfg *rest.Config, origin Origin) (*Cluster, error) {
	now := time.Now()
	c := &Cluster{
		fleet: f, name: name, origin: origin, joined: now, state: Joining, since: now,
		done: make(chan struct{}), poke: make(chan struct{}, 1), renewed: make(chan struct{}, 1),
		triggers: map[schema.GroupResource]*trigger{},
	}
	c.shown.Store(&catalogue{})
	var err error
	if c.link, err = newLink(name, cfg, &f.opts, c.onProblem); err != nil {
		return nil, err
	}
	c.link.hide.detailed = origin.Kind != FromJoin
	c.asks = newDiscovery(c.link)
	c.docs = newDocuments(c.link, name)
	return c, nil
}

// Name is the cluster's name in the fleet.
func (c *Cluster) Name() string { return c.name }

// Origin says where the cluster comes from.
func (c *Cluster) Origin() Origin { return c.origin }

// Resources are those that are mirrored, by group, version and name.
func (c *Cluster) Resources() []*Resource { return slices.Clone(c.shown.Load().sorted) }

// Resource finds a mirrored resource.
func (c *Cluster) Resource(gvr schema.GroupVersionResource) (*Resource, bool) {
	r, ok := c.shown.Load().byName[gvr]
	return r, ok
}

// Groups are the API groups and versions that have a mirrored resource, in the
// cluster's own order. The core group's name is "".
func (c *Cluster) Groups() []metav1.APIGroup {
	groups := slices.Clone(c.shown.Load().groups)
	for i := range groups {
		groups[i] = *groups[i].DeepCopy()
	}
	return groups
}

// Discovered says when the cluster first told what it serves. It is zero for one that never has; err is then why the
// last attempt failed, nil while there was none, in words that can be shown to anybody.
func (c *Cluster) Discovered() (first time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.book.looked {
		return c.book.first, nil
	}
	return time.Time{}, c.link.hide.error(c.book.lookErr)
}

// OpenAPI gives a document of the cluster's description of its API, as the cluster gave
// it: "/openapi/v3", each "/openapi/v3/…" that it lists, both JSON, and "/openapi/v2", as
// protobuf. ok is false for what is not there, or not yet: see Described.
func (c *Cluster) OpenAPI(path string) (body []byte, contentType string, ok bool) {
	return c.docs.get(path)
}

// Described reports whether the cluster has said which OpenAPI documents it has, or they were left out: what OpenAPI
// does not have then is not there. Before, it may still come.
func (c *Cluster) Described() bool { return c.docs.settled.Load() || c.fleet.opts.WithoutOpenAPI }

// Version is the body of /version as the cluster gave it, nil before it did.
func (c *Cluster) Version() []byte {
	if v := c.version.Load(); v != nil {
		return slices.Clone(v.body)
	}
	return nil
}

// lookTimeout is how long a cluster may take to say what it serves.
const lookTimeout = 30 * time.Second

// run mirrors the cluster until ctx ends.
func (c *Cluster) run(ctx context.Context) error {
	var docs sync.WaitGroup
	docs.Go(func() { c.docs.follow(ctx) })
	c.link.crew.start(ctx)
	c.follow(ctx)
	docs.Wait()
	return c.end()
}

// end stops the informers and lets go of everything.
func (c *Cluster) end() error {
	defer close(c.done)
	c.mu.Lock()
	c.book.left = true
	c.mu.Unlock()
	old := c.shown.Swap(&catalogue{})
	for _, r := range old.sorted {
		r.close()
	}
	for _, t := range c.triggers {
		t.close()
	}
	c.docs.drop()
	err := c.link.crew.stop()
	c.link.conns.end()
	c.fleet.tell()
	if err != nil {
		return fmt.Errorf("stop cluster %q: %w", c.name, err)
	}
	return nil
}

// onProblem hears of what goes wrong in an informer. A resource that is not served any
// more means that discovery has changed.
func (c *Cluster) onProblem(p informer.Problem) {
	if source.ReasonOf(p.Err) == source.NotServed {
		c.changedThere()
	}
}

// changedThere has the cluster asked soon what it serves.
func (c *Cluster) changedThere() {
	select {
	case c.poke <- struct{}{}:
	default: // it is known already
	}
}

// show puts another set of resources in the place of the old.
func (c *Cluster) show(byName map[schema.GroupVersionResource]*Resource, groups []metav1.APIGroup) {
	next := &catalogue{byName: byName, groups: groups}
	next.sorted = slices.SortedFunc(maps.Values(byName), func(a, b *Resource) int {
		return compareInfos(*a.info.Load(), *b.info.Load())
	})
	c.shown.Store(next)
}
