package fleet

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source"
)

// Cluster is one member of a fleet. All methods may be called from any goroutine. Only those for reviews, whose names
// begin with Review, send a request to the cluster.
type Cluster struct {
	fleet  *Fleet
	name   string
	origin Origin
	client *clusterClient
	// serverID is what the server's own word about its identity is bound to; "" if its address is the operator's choice.
	serverID string

	cancel           context.CancelFunc // nil until it is started; guarded by the fleet's lock
	restoring        chan struct{}      // closed when it is known what the disk has of it
	done             chan struct{}      // closed when all of its goroutines have ended
	discoveryChanged chan struct{}      // what the cluster serves may have changed

	reconfigured chan struct{}               // it is reached in another way now
	server       atomic.Pointer[api.Cluster] // in the kubeconfig that joined; nil for other origins
	configNumber atomic.Uint64               // see ConfigNumber
	problems     atomic.Uint64               // that resources have reported
	problemLog   problemLog

	resources atomic.Pointer[resourceSet]
	docs      *documents
	uid       atomic.Pointer[string] // see UID; nil until it was asked for, "" if it cannot be known
	savedUID  atomic.Pointer[string] // of the cluster that the disk has under this name; nil if that is not used
	version   atomic.Pointer[serverVersion]

	// The following fields are used only by the cluster's own goroutine.
	asks       *discovery
	identified bool                                               // see identify
	selected   *selection                                         // of the last discovery; shared while it is used
	served     map[schema.GroupVersionResource]metav1.APIResource // that can be mirrored
	triggers   map[schema.GroupResource]*trigger
	// problemsSeen is what problems was when the state was last looked at, and quiet how often it was the same since.
	problemsSeen uint64
	quiet        int

	mu         sync.Mutex
	discovered discoveryStatus
	state      State
	since      time.Time
	complete   bool    // see ClusterHealth.Complete
	groups     []group // of the last discovery
}

// resourceSet is the set of a cluster's mirrored resources. It is immutable.
type resourceSet struct {
	byName map[schema.GroupVersionResource]*Resource
	sorted []*Resource
	groups []metav1.APIGroup
}

// discoveryStatus is the result of the cluster's discovery so far.
type discoveryStatus struct {
	done    bool      // discovery has succeeded at least once
	first   time.Time // the time of the first success
	err     error     // the error of the last attempt
	partial error     // the parts of the last answer that could not be used
	left    bool
}

func newCluster(f *Fleet, name string, cfg *rest.Config, origin Origin) (*Cluster, error) {
	now := time.Now()
	c := &Cluster{
		fleet: f, name: name, origin: origin, state: Joining, since: now,
		restoring: make(chan struct{}), done: make(chan struct{}), discoveryChanged: make(chan struct{}, 1),
		reconfigured: make(chan struct{}, 1), triggers: map[schema.GroupResource]*trigger{},
	}
	c.resources.Store(&resourceSet{})
	if f.opts.Disk == nil {
		close(c.restoring)
	}
	var err error
	if c.client, err = newClusterClient(name, cfg, &f.opts, c.onProblem); err != nil {
		return nil, err
	}
	c.client.redact.detailed = origin.IsOperators()
	if !origin.IsOperators() {
		c.serverID = serverID(cfg)
	}
	c.asks = newDiscovery(c.client)
	c.docs = newDocuments(c.client, name)
	return c, nil
}

// Name returns the cluster's name in the fleet.
func (c *Cluster) Name() string { return c.name }

// UID returns the identity of the cluster: the UID of its kube-system namespace, and the server that says so if
// somebody else than the operator has chosen its address. Until the cluster has answered, it is the one of the cluster whose
// state was restored. It is empty if neither is known.
func (c *Cluster) UID() string {
	for _, known := range []*string{c.uid.Load(), c.savedUID.Load()} {
		if known != nil {
			return *known
		}
	}
	return ""
}

// Origin returns where the cluster comes from.
func (c *Cluster) Origin() Origin { return c.origin }

// Resources returns the mirrored resources, sorted by group, version and name.
func (c *Cluster) Resources() []*Resource { return slices.Clone(c.resources.Load().sorted) }

// Resource returns a mirrored resource.
func (c *Cluster) Resource(gvr schema.GroupVersionResource) (*Resource, bool) {
	r, ok := c.resources.Load().byName[gvr]
	return r, ok
}

// Groups returns the API groups and versions with a mirrored resource, in the cluster's
// own order. The core group's name is "".
func (c *Cluster) Groups() []metav1.APIGroup {
	groups := slices.Clone(c.resources.Load().groups)
	for i := range groups {
		groups[i] = *groups[i].DeepCopy()
	}
	return groups
}

// Discovered returns the time of the cluster's first successful discovery. If there was none, the time is zero and
// err is the error of the last attempt, or nil before the first attempt. The text of err contains no secrets.
func (c *Cluster) Discovered() (first time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.discovered.done {
		return c.discovered.first, nil
	}
	return time.Time{}, c.client.redact.error(c.discovered.err)
}

// OpenAPI returns an OpenAPI document as the cluster sent it: "/openapi/v3" and each
// "/openapi/v3/…" that it lists as JSON, "/openapi/v2" as protobuf. ok is false if the
// document does not exist or was not fetched yet; see Described.
func (c *Cluster) OpenAPI(path string) (body []byte, contentType string, ok bool) {
	return c.docs.get(path)
}

// Described reports whether it is known which OpenAPI documents the cluster has, or they are not fetched at all. A
// document that OpenAPI does not return then does not exist.
func (c *Cluster) Described() bool { return c.docs.settled.Load() || c.fleet.opts.WithoutOpenAPI }

// Version returns the body of /version as the cluster sent it, or nil if it was not fetched yet.
func (c *Cluster) Version() []byte {
	if v := c.version.Load(); v != nil {
		return slices.Clone(v.body)
	}
	return nil
}

// discoveryTimeout bounds one discovery of a cluster.
const discoveryTimeout = 30 * time.Second

// run mirrors the cluster until ctx ends.
func (c *Cluster) run(ctx context.Context) error {
	var docs sync.WaitGroup
	docs.Go(func() { c.docs.follow(ctx) })
	c.client.mirrors.start(ctx)
	c.restore()
	c.refreshLoop(ctx)
	docs.Wait()
	return c.end()
}

// end stops the informers and releases everything.
func (c *Cluster) end() error {
	defer close(c.done)
	c.mu.Lock()
	c.discovered.left = true
	c.mu.Unlock()
	old := c.resources.Swap(&resourceSet{})
	for _, r := range old.sorted {
		r.close()
	}
	for _, t := range c.triggers {
		t.close()
	}
	c.docs.drop()
	err := c.client.mirrors.stop()
	c.client.conns.end()
	c.fleet.notify()
	if err != nil {
		return fmt.Errorf("stop cluster %q: %w", c.name, err)
	}
	return nil
}

// onProblem is called with the problems of informers. A resource that is no longer
// served means that discovery has changed.
func (c *Cluster) onProblem(p informer.Problem) {
	c.problems.Add(1)
	c.problemLog.problem(c.client.log, p)
	if source.ReasonOf(p.Err) == source.NotServed {
		c.requestRefresh()
	}
}

// requestRefresh makes the cluster's goroutine repeat the discovery soon.
func (c *Cluster) requestRefresh() {
	select {
	case c.discoveryChanged <- struct{}{}:
	default: // already requested
	}
}

// show replaces the set of resources.
func (c *Cluster) show(byName map[schema.GroupVersionResource]*Resource, groups []metav1.APIGroup) {
	next := &resourceSet{byName: byName, groups: groups}
	next.sorted = slices.SortedFunc(maps.Values(byName), func(a, b *Resource) int {
		return compareInfos(*a.info.Load(), *b.info.Load())
	})
	c.resources.Store(next)
}

// ServerURL returns the address of the cluster's own API server, without credentials.
func (c *Cluster) ServerURL() string {
	base := c.client.transport.now.Load().base
	return (&url.URL{Scheme: base.Scheme, Host: base.Host, Path: base.Path}).String()
}
