package access

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
)

// Administrators is the group whose members may read everything that is mirrored, and manage the daemon. The user of
// the daemon's single token is a member.
const Administrators = "mirador:administrators"

// Daemon is the name to pass instead of a cluster's for requests to the daemon itself: the resource
// clusters.mirador.dev and paths such as /metrics.
const Daemon = ""

// Decision is the answer to a request.
type Decision struct {
	Allowed bool
	// Reason says why, for the audit log and for reviews. It may be empty for a refusal.
	Reason string
}

// Options configure an Access.
type Options struct {
	// Mode is how requests for objects are authorized, in clusters for which Config has no other mode; "" means ModeRBAC.
	Mode Mode
	// Config has roles and bindings for the daemon itself, and settings of clusters; it may be nil.
	Config *Config
	Logger *slog.Logger
}

// Access decides about the requests of users to the clusters of a fleet and to the daemon itself.
type Access struct {
	fleet  *fleet.Fleet
	mode   Mode
	log    *slog.Logger
	policy atomic.Pointer[policy]

	mu      sync.RWMutex
	members map[string]*member
	changed chan struct{} // closed at the next change of any right

	applied chan struct{} // a role or binding was applied; has a buffer of one

	cache visibleCache
}

// New returns an Access for a fleet. It decides about objects once Run follows the clusters.
func New(f *fleet.Fleet, o Options) (*Access, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Mode == "" {
		o.Mode = ModeRBAC
	}
	if !o.Mode.valid() {
		return nil, fmt.Errorf("the authorization %q is none of rbac, review, rules and none", o.Mode)
	}
	a := &Access{fleet: f, mode: o.Mode, log: o.Logger, members: map[string]*member{}, changed: make(chan struct{}),
		applied: make(chan struct{}, 1)}
	if err := a.SetConfig(o.Config); err != nil {
		return nil, err
	}
	return a, nil
}

// SetConfig replaces the configuration. An invalid one changes nothing.
func (a *Access) SetConfig(c *Config) error {
	p, err := newPolicy(a.mode, c)
	if err != nil {
		return err
	}
	a.policy.Store(p)
	a.notify()
	a.signal() // Run may have to find out more about clusters
	return nil
}

// Changed returns a channel that is closed at the next change of any right.
func (a *Access) Changed() <-chan struct{} {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.changed
}

func (a *Access) notify() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.changed)
	a.changed = make(chan struct{})
}

// Decide decides about one request of a user to a cluster, or to the daemon itself. An error means that the rights are
// not known: the request must be refused.
func (a *Access) Decide(ctx context.Context, u user.Info, cluster string, want Attributes) (Decision, error) {
	p := a.policy.Load()
	if p.administers(u) {
		return Decision{true, "the user is an administrator of the daemon"}, nil
	}
	if cluster == Daemon {
		return decision(p.daemon.Decide(u, want)), nil
	}
	rights, err := a.rightsIn(p, cluster)
	if err != nil {
		return Decision{Reason: err.Error()}, err
	}
	return rights.decide(ctx, p.inCluster(cluster, u), want)
}

// DecideFor is like Decide for a user under its name in the cluster, and for a cluster only. That the user may be an
// administrator of the daemon does not count.
func (a *Access) DecideFor(ctx context.Context, u user.Info, cluster string, want Attributes) (Decision, error) {
	rights, err := a.rightsIn(a.policy.Load(), cluster)
	if err != nil {
		return Decision{Reason: err.Error()}, err
	}
	return rights.decide(ctx, u, want)
}

func decision(allowed bool, reason string) Decision { return Decision{allowed, reason} }

// Visible returns what a user may see of a resource in a cluster with a verb: get, list or watch. While nothing
// changes, it returns the same pointer. nil means everything, because the user is an administrator or rights are not
// checked. An error means that the rights are not known: nothing may be shown.
func (a *Access) Visible(ctx context.Context, u user.Info, cluster, verb string, of schema.GroupResource,
	namespaced bool) (*query.Visible, error) {
	p := a.policy.Load()
	if p.administers(u) {
		return nil, nil
	}
	rights, err := a.rightsIn(p, cluster)
	if err != nil {
		return nil, err
	}
	u = p.inCluster(cluster, u)
	versioned, ok := rights.(versionedRights)
	if !ok {
		return rights.visible(ctx, u, verb, of, namespaced)
	}
	return a.cache.get(rbacKey(u), visibleKey{cluster, verb, of, namespaced}, versioned.version(),
		func() (*query.Visible, error) {
			return rights.visible(ctx, u, verb, of, namespaced)
		})
}

// RulesIn returns the rules that apply to a user in a namespace of a cluster, in the order of a
// SelfSubjectRulesReview. ok is false if there is no such list, because the user may do everything. The list of a
// cluster that decides about each request is incomplete and says so.
func (a *Access) RulesIn(u user.Info, cluster, namespace string) (rules *RuleList, ok bool, err error) {
	p := a.policy.Load()
	if p.administers(u) {
		return nil, false, nil
	}
	rights, err := a.rightsIn(p, cluster)
	if err != nil {
		return nil, false, err
	}
	if _, ok := rights.(*reviews); ok {
		return &RuleList{Incomplete: true, EvaluationError: fmt.Errorf("cluster %q has another authorizer than RBAC and "+
			"decides about each request; its rules cannot be listed", cluster)}, true, nil
	}
	local, ok := rights.(localRights)
	u = p.inCluster(cluster, u)
	if !ok || local.privileged(u) {
		return nil, false, nil
	}
	rules = &RuleList{}
	rules.Resource, rules.NonResource, rules.EvaluationError = local.rbac.Rules(u, namespace)
	return rules, true, nil
}

// RuleList is what a user may do in a namespace.
type RuleList struct {
	Resource    []authorizationv1.ResourceRule
	NonResource []authorizationv1.NonResourceRule
	// Incomplete says that the user may do more than that.
	Incomplete bool
	// EvaluationError says which rules are missing.
	EvaluationError error
}

// Mode returns how requests for objects of a cluster are authorized, or "" if that is not known yet. ModeReview may
// have been configured or detected.
func (a *Access) Mode(cluster string) Mode {
	p := a.policy.Load()
	return a.modeOf(p, cluster, a.member(cluster))
}

func (a *Access) member(cluster string) *member {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.members[cluster]
}

// modeOf returns the mode of a cluster, "" if it has to be detected first. m may be nil.
func (a *Access) modeOf(p *policy, cluster string, m *member) Mode {
	switch {
	case !p.detects(cluster):
		return p.mode(cluster)
	case m == nil:
		return ""
	}
	return m.detector.mode()
}

// rightsIn returns what decides about a cluster.
func (a *Access) rightsIn(p *policy, cluster string) (rights, error) {
	m := a.member(cluster)
	mode := a.modeOf(p, cluster, m)
	switch {
	case mode == ModeNone:
		return everything{}, nil
	case mode == ModeRules:
		return p.rulesIn(cluster), nil
	case m == nil || mode == "":
		return nil, fmt.Errorf("the rights in cluster %q are not known yet", cluster)
	case mode == ModeReview:
		return m.reviews, nil
	}
	return m.rights()
}
