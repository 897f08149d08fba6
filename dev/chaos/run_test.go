package chaos

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/dev/testcluster"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
)

// patience is how long anything that must happen may take. Only a bug exceeds it.
const patience = 3 * time.Minute

// tellAfter is how often a wait logs what it waits for.
const tellAfter = 15 * time.Second

// run is one run of the faults.
type run struct {
	t       *testing.T
	cluster *testcluster.Cluster
	pace    pace
	client  kubernetes.Interface
	dynamic dynamic.Interface
	meta    metadata.Interface

	ours, theirs *fleet
	lonely       *fleet
	writers      *writers
	audit        *auditLog
	rows         []row
	marks        int
}

// pace has the durations of this run.
type pace struct {
	faults []fault
	cuts   int           // how often connections are cut in a row
	hold   time.Duration // how long a fault lasts once it is noticed
	// ping is the seconds of silence until a transport pings, and then until it closes the connection; "" for 30, 15.
	ping      string
	backoff   reflector.Backoff
	rotations int  // of the serving certificate at a time: after two, the authority is the first one again
	sheltered bool // whether a starting server is hidden until it is ready
	bundle    bool // whether the fleets trust both authorities from the start
}

// connect creates an administrator's clients, which connect to the server directly.
func (r *run) connect() {
	r.t.Helper()
	config := r.cluster.Config()
	client, err := rest.HTTPClientFor(config)
	check(r.t, err)
	r.t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(client.Transport) })
	r.client, err = kubernetes.NewForConfigAndClient(config, client)
	check(r.t, err)
	r.dynamic, err = dynamic.NewForConfigAndClient(config, client)
	check(r.t, err)
	r.meta, err = metadata.NewForConfigAndClient(config, client)
	check(r.t, err)
}

// within returns a context for something that must happen.
func (r *run) within() context.Context {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	r.t.Cleanup(cancel)
	return ctx
}

// until polls until nothing is missing. Each poll has its own, shorter context, so that a server that does not answer
// cannot block it.
func until(t *testing.T, ctx context.Context, missing func(ctx context.Context) string) {
	t.Helper()
	look := func() string {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		return missing(ctx)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		what := look()
		if what == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("gave up: %s", what)
		}
	}
}

func (r *run) until(missing func(ctx context.Context) string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	tell := time.Now().Add(tellAfter)
	until(r.t, ctx, func(ctx context.Context) string {
		what := missing(ctx)
		if what == "" {
			return ""
		}
		what += r.healths()
		if time.Now().After(tell) {
			r.t.Logf("still waiting: %s", what)
			tell = time.Now().Add(tellAfter)
		}
		return what
	})
}

// healths returns the health of our informers, for a failure's message.
func (r *run) healths() string {
	var b strings.Builder
	for _, f := range []*fleet{r.ours, r.lonely} {
		if f == nil {
			continue
		}
		for _, m := range f.mirrors {
			h := m.health().Reflector
			fmt.Fprintf(&b, "\n  %s: %s since %s at %s, %d failures, errors %v, next try %s, last error %.150v",
				m.name, h.State, h.Since.Format(time.TimeOnly), h.Version, h.Failures, h.Errors,
				h.NextTry.Format(time.TimeOnly), h.Err)
		}
	}
	return b.String()
}

// last waits while a fault lasts.
func (r *run) last(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.t.Context().Done():
	}
}

// both calls do with the proxies of both fleets.
func (r *run) both(do func(p *faultProxy)) {
	do(r.ours.proxy)
	do(r.theirs.proxy)
}

func cut(p *faultProxy) { p.Cut() }

// versions returns the server's versions of a resource, read from etcd.
func (r *run) versions(ctx context.Context, resource schema.GroupVersionResource) (map[string]string, error) {
	list, err := r.meta.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := make(map[string]string, len(list.Items))
	for i := range list.Items {
		all[list.Items[i].Namespace+"/"+list.Items[i].Name] = list.Items[i].ResourceVersion
	}
	return all, nil
}

// settle stops the writers and waits until every mirror, and every handler's view, equals the server.
func (r *run) settle(fleets ...*fleet) {
	r.t.Helper()
	r.writers.gate.Lock()
	defer r.writers.gate.Unlock()
	r.until(func(ctx context.Context) string {
		for _, resource := range []schema.GroupVersionResource{configMaps, widgets} {
			want, err := r.versions(ctx, resource)
			if err != nil {
				return fmt.Sprintf("listing %s: %v", resource.Resource, err)
			}
			for _, f := range fleets {
				for _, m := range f.mirrors {
					if m.resource != resource {
						continue
					}
					if d := m.differs(want); d != "" {
						return d
					}
				}
			}
		}
		return ""
	})
	for _, resource := range []schema.GroupVersionResource{configMaps, widgets} {
		listed, err := r.versions(r.within(), resource)
		check(r.t, err)
		r.writers.agree(r.t, resource, listed)
	}
	for _, f := range fleets {
		for _, m := range f.mirrors {
			m.delivered.mu.Lock()
			for _, w := range m.delivered.wrongs {
				r.t.Errorf("%s: %s", m.name, w)
			}
			m.delivered.wrongs = nil
			m.delivered.mu.Unlock()
		}
	}
}

// mark changes one object of each resource, in addition to the writers, and waits until all of our mirrors have the
// change, which shows that they follow the server again.
func (r *run) mark() {
	r.t.Helper()
	r.marks++
	want := map[schema.GroupVersionResource]string{}
	for _, resource := range []schema.GroupVersionResource{configMaps, widgets} {
		s := subject{resource, "marker"}
		api := r.dynamic.Resource(resource).Namespace(r.writers.ns)
		r.until(func(ctx context.Context) string {
			got, err := api.Patch(ctx, s.name, types.MergePatchType, r.writers.patch(s, r.marks), metav1.PatchOptions{})
			if err != nil {
				got, err = api.Create(ctx, r.writers.content(s, r.marks), metav1.CreateOptions{})
			}
			if err != nil {
				return fmt.Sprintf("marking %s: %v", resource.Resource, err)
			}
			want[resource] = got.GetResourceVersion()
			return ""
		})
	}
	r.until(func(context.Context) string {
		for _, m := range r.ours.mirrors {
			if got := m.stored()[r.writers.ns+"/marker"]; got != want[m.resource] {
				return fmt.Sprintf("%s has the marker at %q, want %s", m.name, got, want[m.resource])
			}
		}
		return ""
	})
}

// untilOurs waits until the health of each of our mirrors is as wanted.
func (r *run) untilOurs(what string, is func(m *mirror, h informer.Health) bool) {
	r.t.Helper()
	r.until(func(context.Context) string {
		for _, m := range r.ours.mirrors {
			if !is(m, m.health()) {
				return fmt.Sprintf("%s: %s", m.name, what)
			}
		}
		return ""
	})
}

// untilFelt waits until none of our mirrors considers itself connected.
func (r *run) untilFelt() {
	r.t.Helper()
	r.until(func(context.Context) string { return r.unfelt() })
}

// unfelt returns the name of one of our mirrors that considers itself connected.
func (r *run) unfelt() string {
	for _, m := range r.ours.mirrors {
		if m.health().Reflector.State == reflector.Streaming {
			return m.name + " has not noticed the fault"
		}
	}
	return ""
}

// untilWell waits until our mirrors have recovered from the last fault: their streams have lasted for a while, so that
// their backoff is reset.
func (r *run) untilWell() {
	r.t.Helper()
	r.untilOurs("has not recovered", func(_ *mirror, h informer.Health) bool {
		return h.Reflector.State == reflector.Streaming && h.Reflector.Failures == 0 && h.Reflector.Err == nil
	})
}

// reported returns the number of failures of a reason that our mirrors have reported, by mirror.
func (r *run) reported(reason source.Reason) map[*mirror]uint64 {
	n := map[*mirror]uint64{}
	for _, m := range r.ours.mirrors {
		n[m] = m.health().Reflector.Errors[reason]
	}
	return n
}
