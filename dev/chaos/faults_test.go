package chaos

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source"
)

// fault is a fault that is injected into both fleets.
type fault struct {
	name string
	do   func(r *run)
}

// onTheWay are faults between client and server, inside those of the server itself and of what it serves.
var (
	onTheWay = []fault{
		{"connections cut", connectionsCut},
		{"latency", latency},
		{"starved", starved},
		{"half open", halfOpen},
		{"half open, one way", halfOpenOneWay},
		{"accepted, then silence", acceptedThenSilence},
	}
	inside = []fault{
		{"rights withdrawn", rightsWithdrawn},
		{"CRD deleted, another made", crdReplaced},
		{"namespace deleted", namespaceDeleted},
		{"certificates rotated", certificatesRotated},
		{"API server paused", serverPaused},
	}
	// Two relists are best some time apart: an informer that has to relist again soon rightly waits longer.
	restarted  = []fault{{"API server restarted", serverRestarted}}
	longFaults = slices.Concat(restarted, onTheWay, inside, []fault{
		{"API server killed", serverKilled},
		{"etcd compacted", etcdCompacted},
	})
	// A start of the API server takes seconds, so the two faults that need one share it.
	shortFaults = slices.Concat(restarted, onTheWay, inside, []fault{
		{"API server killed, etcd compacted", serverKilledAndCompacted},
	})
)

func connectionsCut(r *run) {
	for range r.pace.cuts {
		r.both(cut)
		r.mark()
	}
}

func latency(r *run) {
	r.both(func(p *faultProxy) { p.Set(impairment{latency: 100 * time.Millisecond}) })
	r.both(cut)
	r.mark()
	r.last(r.pace.hold)
	r.mark()
	r.both(func(p *faultProxy) { p.Set(impairment{}) })
}

func starved(r *run) {
	r.both(func(p *faultProxy) { p.Set(impairment{bytesPerSecond: 2000}) })
	r.last(r.pace.hold)
	r.both(func(p *faultProxy) { p.Set(impairment{}) })
	r.mark()
}

// halfOpen leaves every connection half open. New ones would work, but no client notices that it needs one.
func halfOpen(r *run) {
	r.both(func(p *faultProxy) { p.Freeze(toServer | toClient) })
	r.mark()
}

// halfOpenOneWay drops what the server sends, and then what the client sends, which does not affect an open watch.
func halfOpenOneWay(r *run) {
	r.both(func(p *faultProxy) { p.Freeze(toClient) })
	r.mark()
	r.both(func(p *faultProxy) { p.Freeze(toServer) })
	r.mark()
	r.both(cut)
}

func acceptedThenSilence(r *run) {
	r.both(func(p *faultProxy) {
		p.Set(impairment{silent: true})
		p.Freeze(toServer | toClient)
	})
	r.untilFelt()
	r.last(r.pace.hold)
	r.both(func(p *faultProxy) { p.Set(impairment{}) })
	r.mark()
}

func serverPaused(r *run) {
	r.cluster.Fault(r.t, "pause", "apiserver")
	r.untilFelt()
	r.last(r.pace.hold)
	r.cluster.Fault(r.t, "resume", "apiserver")
	r.mark()
}

func serverKilled(r *run) {
	r.cluster.Fault(r.t, "kill", "apiserver")
	r.untilFelt()
	r.last(r.pace.hold)
	r.startServer("restart", "apiserver")
	r.mark()
}

func serverKilledAndCompacted(r *run) {
	r.cluster.Fault(r.t, "kill", "apiserver")
	r.untilFelt()
	r.last(r.pace.hold)
	etcdCompacted(r) // this also starts the API server
}

func serverRestarted(r *run) {
	r.startServer("restart", "apiserver")
	r.mark()
}

// startServer injects a fault that restarts the API server. In a short run no connection is accepted from the time the
// fault is noticed until the server is ready, as with a load balancer in front of it: every client's backoff then
// stays short.
func (r *run) startServer(fault ...string) {
	r.t.Helper()
	if !r.pace.sheltered {
		r.cluster.Fault(r.t, fault...)
		return
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	var sheltering sync.WaitGroup
	sheltering.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for r.unfelt() != "" {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
		r.both(func(p *faultProxy) { p.Set(impairment{silent: true}) })
	})
	r.cluster.Fault(r.t, fault...)
	cancel()
	sheltering.Wait()
	r.both(func(p *faultProxy) { p.Set(impairment{}) })
}

// etcdCompacted compacts the history from which a watch would resume: every informer has to relist.
func etcdCompacted(r *run) {
	before := r.reported(source.Expired)
	r.startServer("compact")
	r.mark()
	r.untilOurs("has not seen that its version has expired", func(m *mirror, h informer.Health) bool {
		return h.Reflector.Errors[source.Expired] > before[m]
	})
}

const roleName = "chaos-reader"

func (r *run) grant() {
	r.t.Helper()
	_, err := r.client.RbacV1().ClusterRoleBindings().Create(r.within(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: roleName},
		Subjects:   []rbacv1.Subject{{Kind: "Group", Name: group, APIGroup: rbacv1.GroupName}},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: roleName, APIGroup: rbacv1.GroupName},
	}, metav1.CreateOptions{})
	check(r.t, err)
}

// rightsWithdrawn removes the right to read. This does not end an open watch, so the connections are cut as soon as
// the server has applied it.
func rightsWithdrawn(r *run) {
	before := r.reported(source.Denied)
	check(r.t, r.client.RbacV1().ClusterRoleBindings().Delete(r.within(), roleName, metav1.DeleteOptions{}))
	r.until(func(ctx context.Context) string {
		review, err := r.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: r.ours.agent, Groups: []string{group},
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "watch", Resource: configMaps.Resource}},
		}, metav1.CreateOptions{})
		if err != nil || review.Status.Allowed {
			return fmt.Sprintf("the rights still exist: %v", err)
		}
		return ""
	})
	r.both(cut)
	r.untilOurs("has not been denied access",
		func(m *mirror, h informer.Health) bool { return h.Reflector.Errors[source.Denied] > before[m] })
	r.last(r.pace.hold)
	r.grant()
	r.mark()
}

// crdReplaced deletes the widgets' definition, and all widgets with it, and creates another one of the same name, in
// which size has another type.
func crdReplaced(r *run) {
	before := r.reported(source.NotServed)
	r.writers.gate.Lock()
	r.writers.served.Store(false)
	r.writers.gate.Unlock()
	r.deleteCRD()
	r.until(func(context.Context) string {
		for _, m := range r.ours.mirrors {
			if m.resource == widgets && m.health().Reflector.Errors[source.NotServed] == before[m] {
				return m.name + " has not seen that widgets are no longer served"
			}
		}
		return ""
	})
	r.last(r.pace.hold)
	r.writers.textual.Store(!r.writers.textual.Load())
	r.writers.forget(widgets)
	r.createCRD()
	r.writers.served.Store(true)
	r.mark()
}

// namespaceDeleted fills a namespace, deletes it, and cuts the connections during the deletion.
func namespaceDeleted(r *run) {
	r.marks++
	name := fmt.Sprintf("chaos-victim-%d", r.marks)
	_, err := r.client.CoreV1().Namespaces().Create(r.within(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	check(r.t, err)
	for i := range 20 {
		for _, s := range []subject{{configMaps, fmt.Sprintf("victim-%02d", i)}, {widgets, fmt.Sprintf("victim-%02d", i)}} {
			_, err := r.dynamic.Resource(s.resource).Namespace(name).Create(r.within(), r.writers.content(s, i),
				metav1.CreateOptions{})
			check(r.t, err)
		}
	}
	r.mark() // everything is mirrored when this later change is
	check(r.t, r.client.CoreV1().Namespaces().Delete(r.within(), name, metav1.DeleteOptions{}))
	r.both(cut)
	r.until(func(ctx context.Context) string {
		_, err := r.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("namespace %s still exists: %v", name, err)
	})
	r.mark()
}

// certificatesRotated replaces the server's certificate and every client certificate, the latter as files that the
// configs name. The audit log has the certificate of each request.
func certificatesRotated(r *run) {
	for range r.pace.rotations {
		r.cluster.Fault(r.t, "rotate")
	}
	r.renew()
}

// trustBoth makes every client trust both of the cluster's authorities, as is done long before one is replaced by the
// other.
func (r *run) trustBoth() {
	for _, f := range []*fleet{r.ours, r.theirs, r.lonely} {
		replace(r.t, f.files.ca, r.cluster.Config().CAData)
	}
}

// authorityReplaced makes the server use a certificate of the other authority, which is in the CA files since
// trustBoth, but was not when they were first read.
func authorityReplaced(r *run) {
	r.cluster.Fault(r.t, "rotate")
	r.renew()
}

func (r *run) renew() {
	r.t.Helper()
	credentials := map[string]string{}
	for _, f := range []*fleet{r.ours, r.theirs} {
		credentials[f.agent] = f.files.renew(r.t, r.within(), r.client, f.agent)
	}
	r.both(cut)
	r.mark()
	r.until(func(context.Context) string {
		r.audit.read(r.t)
		for agent, credential := range credentials {
			if !r.audit.came(agent, credential) {
				return fmt.Sprintf("no request of %s has used its new certificate %s", agent, credential)
			}
		}
		return ""
	})
}

var crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// createCRD creates the definition of the widgets and returns when they are served.
func (r *run) createCRD() {
	r.t.Helper()
	size := "integer"
	if r.writers.textual.Load() {
		size = "string"
	}
	body := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"widgets.%s"},
	"spec":{"group":%q,"scope":"Namespaced","names":{"kind":"Widget","plural":"widgets","singular":"widget"},
	"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
	"spec":{"type":"object","properties":{"size":{"type":%q}}}}}}}]}}`, widgets.Group, widgets.Group, size)
	check(r.t, r.client.Discovery().RESTClient().Post().AbsPath(crdPath).SetHeader("Content-Type",
		"application/json").Body([]byte(body)).Do(r.within()).Error())
	r.until(func(ctx context.Context) string {
		if _, err := r.versions(ctx, widgets); err != nil {
			return fmt.Sprintf("widgets are not served: %v", err)
		}
		return ""
	})
}

// deleteCRD deletes the definition of the widgets and returns when it no longer exists.
func (r *run) deleteCRD() {
	r.t.Helper()
	api := r.client.Discovery().RESTClient()
	path := crdPath + "/widgets." + widgets.Group
	check(r.t, api.Delete().AbsPath(path).Do(r.within()).Error())
	r.until(func(ctx context.Context) string {
		var status int
		err := api.Get().AbsPath(path).Do(ctx).StatusCode(&status).Error()
		if status == http.StatusNotFound {
			return ""
		}
		return fmt.Sprintf("the definition still exists: %d, %v", status, err)
	})
}
