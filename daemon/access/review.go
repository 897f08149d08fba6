package access

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
)

const (
	// An API server uses the answers of a webhook for five minutes if they allow and for half a minute if they refuse.
	// Here a right that is withdrawn must take effect within seconds, and a new one soon.
	allowedFor = 10 * time.Second
	refusedFor = 5 * time.Second
	// failedFor is how long an error is the answer, so that a cluster that does not answer is not asked all the time.
	failedFor = time.Second
	// refusedNamespaceFor is how long a namespace stays out of a set. A user with few rights is refused in most of the
	// namespaces, and asking for all of them as often as for the others would be most of the requests.
	refusedNamespaceFor = 30 * time.Second

	// decideTimeout and visibleTimeout bound how long a question takes, including the wait for its turn.
	decideTimeout  = 5 * time.Second
	visibleTimeout = 10 * time.Second

	// reviewsAtOnce and reviewsOfUserAtOnce bound the requests to one cluster.
	reviewsAtOnce       = 32
	reviewsOfUserAtOnce = 8
	// questionsOfUserAtOnce bounds the questions of one user that wait for their turn.
	questionsOfUserAtOnce = 128
	// maxReviewedNamespaces is for how many namespaces a cluster is asked what a user may see.
	maxReviewedNamespaces = 500
	// maxQuestion bounds the length of the texts in a question.
	maxQuestion = 4 << 10
)

// reviews asks one cluster what users may do. It keeps answers for seconds, asks each question once at a time, and
// repeats the questions of open watches in the background; see repeat.
type reviews struct {
	cluster string
	review  func(context.Context,
		authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error)
	namespaces func() ([]string, error)
	signal     func() // called after version has changed

	changes atomic.Uint64
	slots   chan struct{} // one for each request in progress
	watched chan struct{} // a watch has asked; has a buffer of one

	ctx    context.Context // of everything that is asked
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	answers answerCache
}

// newReviews returns the reviews of a cluster. The caller must call close. signal is called when the answer to a
// question of a watch may have changed.
func newReviews(c *fleet.Cluster, signal func()) *reviews {
	r := &reviews{cluster: c.Name(), review: c.ReviewAccess, signal: signal,
		namespaces: func() ([]string, error) { return namespacesOf(c) }}
	r.start()
	return r
}

func (r *reviews) start() {
	r.slots, r.watched = make(chan struct{}, reviewsAtOnce), make(chan struct{}, 1)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.work.Go(r.repeat)
}

// close ends all questions and waits until nothing runs any more.
func (r *reviews) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.work.Wait()
}

// version changes when the answer to a question of a watch may have changed.
func (r *reviews) version() uint64 { return r.changes.Load() }

func (r *reviews) decide(ctx context.Context, u user.Info, want Attributes) (Decision, error) {
	if n := want.length(); n > maxQuestion {
		err := fmt.Errorf("the request is too long to ask cluster %q whether it is allowed", r.cluster)
		return Decision{Reason: err.Error()}, err
	}
	key := reviewKey(u)
	r.mu.Lock()
	of := r.answers.user(key, u)
	a := of.decisions[want]
	if a == nil {
		a = &answer[Decision]{of: of, timeout: decideTimeout, watch: want.Verb == watchVerb,
			ask: func(ctx context.Context, _ Decision) (Decision, time.Duration, error) {
				return r.askDecision(ctx, of, want)
			},
			differs: func(a, b Decision) bool { return a.Allowed != b.Allowed }}
		of.decisions[want] = a
		r.answers.resize(of, &a.size, 1)
	}
	d, err := get(ctx, r, a) // unlocks
	if err != nil {
		return Decision{Reason: err.Error()}, err
	}
	return d, nil
}

// length returns the length of all texts.
func (a *Attributes) length() int {
	return len(a.Verb) + len(a.APIGroup) + len(a.APIVersion) + len(a.Resource) + len(a.Subresource) + len(a.Namespace) +
		len(a.Name) + len(a.Path)
}

const watchVerb = "watch"

func (r *reviews) askDecision(ctx context.Context, of *reviewedUser, want Attributes) (Decision,
	time.Duration, error) {
	d, err := r.send(ctx, of, want)
	if d.Allowed {
		return d, allowedFor, err
	}
	return d, refusedFor, err
}

// send sends one review when it is its turn.
func (r *reviews) send(ctx context.Context, of *reviewedUser, want Attributes) (Decision, error) {
	for _, slots := range []chan struct{}{of.slots, r.slots} {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-ctx.Done():
			return Decision{}, fmt.Errorf("cluster %q was not asked about the rights of the user: too many questions, or it "+
				"answers too slowly", r.cluster)
		}
	}
	spec := of.spec
	if want.ResourceRequest {
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Verb: want.Verb, Group: want.APIGroup,
			Version: want.APIVersion, Resource: want.Resource, Subresource: want.Subresource, Namespace: want.Namespace,
			Name: want.Name}
	} else {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: want.Path, Verb: want.Verb}
	}
	status, err := r.review(ctx, spec)
	if err != nil {
		return Decision{}, fmt.Errorf("the rights of the user are not known: %w", err)
	}
	d := Decision{status.Allowed && !status.Denied, status.Reason}
	if d.Reason == "" && !d.Allowed {
		d.Reason = status.EvaluationError
	}
	return d, nil
}

// setKey identifies what a user may see of a resource.
type setKey struct {
	verb       string
	of         schema.GroupResource
	namespaced bool
}

// reviewedSet is what a user may see. It does not change.
type reviewedSet struct {
	visible *query.Visible
	refused map[string]time.Time // namespaces that are not visible, and when the cluster said so
}

// visible returns what the user may see at cluster scope or, if that is nothing, in each namespace. A cluster cannot
// be asked for names, so objects that the user may see only by their name are not in the set.
func (r *reviews) visible(ctx context.Context, u user.Info, verb string, of schema.GroupResource,
	namespaced bool) (*query.Visible, error) {
	key, want := reviewKey(u), setKey{verb, of, namespaced}
	r.mu.Lock()
	usr := r.answers.user(key, u)
	a := usr.sets[want]
	if a == nil {
		a = &answer[*reviewedSet]{of: usr, timeout: visibleTimeout, watch: verb == watchVerb,
			ask: func(ctx context.Context, last *reviewedSet) (*reviewedSet, time.Duration, error) {
				return r.askVisible(ctx, usr, want, last)
			},
			differs: func(a, b *reviewedSet) bool { return a.visible != b.visible },
			sizeOf:  func(s *reviewedSet) int { return 1 + len(s.visible.Namespaces) + len(s.refused) }}
		usr.sets[want] = a
		r.answers.resize(usr, &a.size, 1)
	}
	set, err := get(ctx, r, a) // unlocks
	if err != nil {
		return nil, err
	}
	return set.visible, nil
}

// askVisible returns what a user may see. If that is the same as last, it returns the same pointer to the set.
func (r *reviews) askVisible(ctx context.Context, of *reviewedUser, k setKey,
	last *reviewedSet) (*reviewedSet, time.Duration, error) {
	began := time.Now()
	next := &reviewedSet{visible: &query.Visible{}}
	want := Attributes{ResourceRequest: true, Verb: k.verb, APIGroup: k.of.Group, Resource: k.of.Resource}
	d, err := r.send(ctx, of, want)
	if err == nil && !d.Allowed && k.namespaced {
		err = r.askNamespaces(ctx, of, want, last, next, began)
	}
	if err != nil {
		return nil, 0, err
	}
	next.visible.All = d.Allowed
	if last != nil && last.visible.Equal(next.visible) {
		next.visible = last.visible
	}
	if next.visible.Empty() {
		return next, refusedFor, nil
	}
	return next, allowedFor, nil
}

// askNamespaces finds the namespaces in which a request is allowed.
func (r *reviews) askNamespaces(ctx context.Context, of *reviewedUser, want Attributes, last, next *reviewedSet,
	now time.Time) error {
	all, err := r.namespaces()
	if err != nil {
		return err
	}
	if len(all) > maxReviewedNamespaces {
		return fmt.Errorf("cluster %q has %d namespaces, and is asked for at most %d what a user may see; name the namespace",
			r.cluster, len(all), maxReviewedNamespaces)
	}
	next.refused = map[string]time.Time{}
	var ask []string
	for _, ns := range all {
		if last != nil {
			if at, ok := last.refused[ns]; ok && now.Sub(at) < refusedNamespaceFor {
				next.refused[ns] = at
				continue
			}
		}
		ask = append(ask, ns)
	}
	var mu sync.Mutex
	var workers sync.WaitGroup
	var failed error
	at := 0
	take := func() (ns string, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if at == len(ask) || failed != nil {
			return "", false
		}
		at++
		return ask[at-1], true
	}
	for range min(reviewsOfUserAtOnce, len(ask)) {
		workers.Go(func() {
			for ns, ok := take(); ok; ns, ok = take() {
				want := want
				want.Namespace = ns
				d, err := r.send(ctx, of, want)
				mu.Lock()
				switch {
				case err != nil:
					failed = err
				case d.Allowed:
					next.visible.Namespaces = append(next.visible.Namespaces, ns)
				default:
					next.refused[ns] = now
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	slices.Sort(next.visible.Namespaces)
	return failed
}

// namespacesOf returns the names of the mirrored namespaces of a cluster.
func namespacesOf(c *fleet.Cluster) (names []string, err error) {
	res, ok := c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	switch {
	case !ok:
		return nil, fmt.Errorf("the namespaces of cluster %q are not mirrored, so it is not known in which of them the user "+
			"may see something; include them, or name the namespace", c.Name())
	case !res.Synced():
		return nil, fmt.Errorf("the namespaces of cluster %q have not been read yet", c.Name())
	}
	for e := range res.Snapshot().Entries() {
		_, name := e.Key.Split()
		names = append(names, name)
	}
	return names, nil
}
