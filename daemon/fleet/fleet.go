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
	"time"
)

// Options say what is mirrored and how.
type Options struct {
	// Include and Exclude choose resources by patterns: "pods" is that resource in any
	// group, "deployments.apps" in one, "pods." in the core group alone, "*.example.com" is
	// everything in a group, "*.*.example.com" in the groups below it, "*" everything.
	// Exclude wins. No Include is all.
	Include, Exclude []string
	// Secrets mirrors the core group's secrets, which is not done otherwise, whatever
	// the patterns say.
	Secrets bool
	// StateFile remembers the clusters that joined by JoinKubeconfig, credentials
	// included, in a file of mode 0600. "" remembers nothing.
	StateFile string
	// HistoryBytes and HistoryAge bound the log of changes of each resource. The
	// defaults are 8 MiB and 10 minutes.
	HistoryBytes int
	HistoryAge   time.Duration
	// Refresh is how often a cluster is asked what it serves when nothing tells that it
	// changed; the default is 5 minutes. A change of a custom resource definition or an
	// API service has it asked soon.
	Refresh time.Duration
	// WithoutOpenAPI leaves the clusters' OpenAPI documents out: they are megabytes, and
	// who reads objects alone has no use for them.
	WithoutOpenAPI bool
	// Limits bound what a cluster may make us hold. A resource that exceeds one is let go
	// of, tells so in its Health, and is tried again after a while.
	Limits Limits
	// Logger is slog.Default() if nil.
	Logger *slog.Logger

	id string // of the fleet, random
}

const (
	defaultHistoryBytes = 8 << 20
	defaultHistoryAge   = 10 * time.Minute
	defaultRefresh      = 5 * time.Minute
)

// ErrExists is what joining wraps when there is a cluster of that name.
var ErrExists = errors.New("there is a cluster of this name; have it leave first, or choose another name")

// ErrUnknown is what Leave wraps when there is no cluster of that name.
var ErrUnknown = errors.New("there is no cluster of this name")

// ErrEnded is what joining wraps when Run has ended.
var ErrEnded = errors.New("the fleet has ended; make another one")

// phase is where a fleet stands between New and the end.
type phase uint8

const (
	prepared phase = iota
	running
	ended
)

// Fleet mirrors clusters. All methods may be called from any goroutine.
type Fleet struct {
	opts   Options
	choice *choice
	log    *slog.Logger

	// moves is held while a cluster joins or leaves, so that the file and the set agree.
	// It is taken before mu.
	moves sync.Mutex
	state *stateFile // nil if nothing is remembered

	mu       sync.Mutex
	phase    phase
	ctx      context.Context // of Run, while it runs
	clusters map[string]*Cluster
	changed  chan struct{}
	stuck    []error // what did not end as it should

	// work counts the clusters' goroutines, those of clusters that have left included.
	work sync.WaitGroup
}

// New makes a fleet with the clusters that the state file remembers. A state file
// that cannot be read is an error, and is left as it is.
func New(o Options) (*Fleet, error) {
	choice, err := newChoice(o.Include, o.Exclude, o.Secrets)
	if err != nil {
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
	f := &Fleet{opts: o, choice: choice, log: o.Logger, clusters: map[string]*Cluster{}, changed: make(chan struct{})}
	if o.StateFile != "" {
		if err := f.recall(o.StateFile); err != nil {
			return nil, fmt.Errorf("make a fleet: %w", err)
		}
	}
	return f, nil
}

// Run mirrors until ctx ends, and returns when everything that it started has ended.
// Its error names the handlers that were still running a while after that. A fleet
// runs once.
func (f *Fleet) Run(ctx context.Context) error {
	f.mu.Lock()
	if f.phase != prepared {
		f.mu.Unlock()
		return errors.New("run the fleet: it runs once, and has been started before; make another one")
	}
	f.phase, f.ctx = running, ctx
	for _, c := range f.clusters {
		f.start(c)
	}
	f.mu.Unlock()

	<-ctx.Done()
	f.mu.Lock()
	f.phase = ended
	f.mu.Unlock()
	f.work.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := errors.Join(f.stuck...); err != nil {
		return fmt.Errorf("stop the fleet: %w", err)
	}
	return nil
}

// start sets a cluster's own goroutine to work. The lock is held.
func (f *Fleet) start(c *Cluster) {
	ctx, cancel := context.WithCancel(f.ctx)
	c.cancel = cancel
	f.work.Go(func() {
		defer cancel()
		if err := c.run(ctx); err != nil {
			f.mu.Lock()
			f.stuck = append(f.stuck, err)
			f.mu.Unlock()
		}
	})
}

// Clusters are the members, by name.
func (f *Fleet) Clusters() []*Cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(maps.Values(f.clusters), func(a, b *Cluster) int { return strings.Compare(a.name, b.name) })
}

// Cluster finds a member by its name.
func (f *Fleet) Cluster(name string) (*Cluster, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.clusters[name]
	return c, ok
}

// Changed is closed at the next change of the set of clusters, or of what any cluster's
// Resources, their Info and its Groups are. Get it before looking at the sets: then no change is missed.
func (f *Fleet) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// tell closes Changed. The lock is not held.
func (f *Fleet) tell() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tellLocked()
}

func (f *Fleet) tellLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}
