package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mirador-k8s/mirador/daemon/disk"
)

// Options configure a fleet.
type Options struct {
	// Include and Exclude select resources by patterns: "pods" is the resource in any
	// group, "deployments.apps" in one group, "pods." in the core group, "*.example.com" is
	// everything in a group, "*.*.example.com" in the groups below it, "*" everything.
	// Exclude takes precedence. An empty Include selects everything but leases.coordination.k8s.io
	// and events.events.k8s.io, which are the core group's events again.
	Include, Exclude []string
	// Secrets mirrors the core group's secrets. Without it they are not mirrored,
	// regardless of the patterns.
	Secrets bool
	// SecretData keeps the data of secrets that are mirrored. Without it, their names and types are mirrored, and the data
	// is redacted.
	SecretData bool
	// Redact has rules for values that are replaced before an object is stored, such as "configmaps:/data/*password*" or
	// "pods:/spec/containers/*/env/*/value": resources as in Include, and the path of the values as a JSON pointer in
	// which * matches any text. No memory, log or answer has the values.
	Redact []string
	// StateFile is a file of mode 0600 with the clusters of JoinKubeconfig, including
	// their credentials. They join again after a restart. With "" they do not.
	StateFile string
	// HistoryBytes and HistoryAge bound the log of changes of each resource. The
	// defaults are 8 MiB and 10 minutes.
	HistoryBytes int
	HistoryAge   time.Duration
	// Refresh is the time between two discoveries of a cluster; the default is 5 minutes.
	// A change of a custom resource definition or an API service triggers one earlier.
	Refresh time.Duration
	// WithoutOpenAPI disables fetching the clusters' OpenAPI documents, which need
	// megabytes and are of no use to a program that only reads objects.
	WithoutOpenAPI bool
	// Limits bound the memory for a cluster's objects. A resource that exceeds a limit is
	// dropped, reports an error in its Health, and is retried later.
	Limits Limits
	// Logger is slog.Default() if nil.
	Logger *slog.Logger

	// Disk keeps the mirror of each cluster: at the next start it is served at once, and each watch resumes at the
	// version on disk. A nil Disk keeps nothing. The caller runs its Run and closes it after that of the fleet.
	Disk *disk.Disk
	// DiskSecrets keeps the core group's secrets on disk, too, encrypted with the key of the Disk.
	DiskSecrets bool

	id         string // of the fleet, random
	lists      *turns // of lists in all clusters
	asks       *turns // of discoveries
	equal      *equalAnswers
	usage      *fleetUsage
	redactions []redaction
}

const (
	defaultHistoryBytes = 8 << 20
	defaultHistoryAge   = 10 * time.Minute
	defaultRefresh      = 5 * time.Minute
)

// ErrExists is wrapped by the error of a join if a cluster of that name exists.
var ErrExists = errors.New("there is a cluster of this name; have it leave first, or choose another name")

// ErrUnknown is wrapped by the error of Leave if there is no cluster of that name.
var ErrUnknown = errors.New("there is no cluster of this name")

// errFleetEnded is wrapped by the error of a join after the end of Run.
var errFleetEnded = errors.New("the fleet has ended; make another one")

// phase is a part of a fleet's life.
type phase uint8

const (
	prepared phase = iota
	running
	ended
)

// Fleet mirrors clusters. All methods may be called from any goroutine.
type Fleet struct {
	opts   Options
	filter *resourceFilter
	log    *slog.Logger

	// membership is locked while a cluster joins or leaves, so that the state file and the
	// set of clusters agree. It is locked before mu.
	membership sync.Mutex
	state      *stateFile // nil without Options.StateFile

	mu       sync.Mutex
	phase    phase
	ctx      context.Context // of Run, while it runs
	clusters map[string]*Cluster
	changed  chan struct{}
	stopErrs []error // of clusters that did not stop in time
	orders   orders

	tokenKey atomic.Pointer[TokenKey]

	// work counts the clusters' goroutines, including those of clusters that have left.
	work sync.WaitGroup
}

// New returns a fleet with the clusters of the state file. If the state file cannot be
// read, New returns an error and does not change the file.
func New(o Options) (*Fleet, error) {
	filter, err := newResourceFilter(o.Include, o.Exclude, o.Secrets)
	if err != nil {
		return nil, fmt.Errorf("make a fleet: %w", err)
	}
	if o.redactions, err = parseRedactions(o.Redact, o.SecretData); err != nil {
		return nil, fmt.Errorf("make a fleet: %w", err)
	}
	if o.HistoryBytes < 0 || o.HistoryAge < 0 || o.Refresh < 0 {
		return nil, errors.New("make a fleet: HistoryBytes, HistoryAge and Refresh cannot be negative; leave them 0 for " +
			"the default")
	}
	if o.Limits, err = o.Limits.orDefault(); err != nil {
		return nil, fmt.Errorf("make a fleet: %w", err)
	}
	if o.HistoryBytes == 0 {
		o.HistoryBytes = defaultHistoryBytes
	}
	if o.HistoryAge == 0 {
		o.HistoryAge = defaultHistoryAge
	}
	if o.Refresh == 0 {
		o.Refresh = defaultRefresh
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.id = rand.Text()
	o.lists, o.asks = newTurns(listsOfFleet, slowList, nil), newTurns(discoveriesOfFleet, slowDiscovery, nil)
	o.equal = new(equalAnswers)
	o.usage = newFleetUsage(o.Limits.FleetBytes)
	f := &Fleet{opts: o, filter: filter, log: o.Logger, clusters: map[string]*Cluster{}, changed: make(chan struct{})}
	if o.Disk != nil {
		if _, err := f.loadTokenKey(); err != nil {
			f.log.Warn("fleet: continue tokens of an earlier start cannot be read", "error", err)
		}
	}
	if o.StateFile != "" {
		if err := f.loadState(o.StateFile); err != nil {
			return nil, fmt.Errorf("make a fleet: %w", err)
		}
	}
	return f, nil
}

// Run mirrors until ctx ends, and returns when all goroutines that it started have ended.
// Its error names the handlers that did not return in time. A fleet runs once.
func (f *Fleet) Run(ctx context.Context) error {
	f.mu.Lock()
	if f.phase != prepared {
		f.mu.Unlock()
		return errors.New("run the fleet: it runs once, and has been started before; make another one")
	}
	f.phase, f.ctx = running, ctx
	if f.opts.Disk != nil {
		f.orders.records = f.opts.Disk.OpenRecords()
		defer f.orders.records.Close()
	}
	for _, c := range f.clusters {
		f.start(c)
	}
	f.mu.Unlock()
	if f.opts.Disk != nil {
		f.work.Go(func() { newDiskWriter(f).run(ctx) })
	}

	<-ctx.Done()
	f.mu.Lock()
	f.phase = ended
	f.mu.Unlock()
	f.work.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := errors.Join(f.stopErrs...); err != nil {
		return fmt.Errorf("stop the fleet: %w", err)
	}
	return nil
}

// start starts a cluster's goroutine. The lock is held.
func (f *Fleet) start(c *Cluster) {
	ctx, cancel := context.WithCancel(f.ctx)
	c.cancel = cancel
	f.work.Go(func() {
		defer cancel()
		if err := c.run(ctx); err != nil {
			f.mu.Lock()
			f.stopErrs = append(f.stopErrs, err)
			f.mu.Unlock()
		}
	})
}

// DiskHealth returns the health of Options.Disk; ok is false if there is none.
func (f *Fleet) DiskHealth() (h disk.Health, ok bool) {
	if f.opts.Disk == nil {
		return h, false
	}
	return f.opts.Disk.Health(), true
}

// Memory returns the bytes that all mirrors take, as Limits.FleetBytes counts them, and that limit; it is 0 if there is
// none.
func (f *Fleet) Memory() (bytes, limit int64) { return f.opts.usage.total(), f.opts.usage.max }

// Clusters returns the members, sorted by name.
func (f *Fleet) Clusters() []*Cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(maps.Values(f.clusters), func(a, b *Cluster) int { return strings.Compare(a.name, b.name) })
}

// Cluster returns a member by its name.
func (f *Fleet) Cluster(name string) (*Cluster, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.clusters[name]
	return c, ok
}

// Changed returns a channel that is closed at the next change of the set of clusters, or of a cluster's Resources,
// their Info, its Groups, or its ConfigNumber. Call it before reading the sets, so that no change is missed.
func (f *Fleet) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// notify closes the channel of Changed. The lock is not held.
func (f *Fleet) notify() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notifyLocked()
}

func (f *Fleet) notifyLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}
