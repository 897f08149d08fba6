package oncluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/dev/testcluster"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
)

// untilState waits until the mirror's reflector is in a state.
func (m *mirror[T]) untilState(w *writer, want reflector.State) reflector.Health {
	w.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		h := m.Health().Reflector
		if h.State == want {
			return h
		}
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			w.t.Fatalf("the state never was %s: %+v", want, h)
		}
	}
}

func TestP12_OnARealServerAResourceThatCannotBeWatchedIsPolled(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	w := newWriter(t, c)
	w.create("a")
	cfg := c.Config()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "lister-of-" + w.ns}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "lister"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}}}
	role = must[*rbacv1.Role](t)(w.client.RbacV1().Roles(w.ns).Create(w.ctx, role, metav1.CreateOptions{}))
	must[*rbacv1.RoleBinding](t)(w.client.RbacV1().RoleBindings(w.ns).Create(w.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "lister"},
		Subjects:   []rbacv1.Subject{{Kind: "User", Name: cfg.Impersonate.UserName}},
		RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: "lister", APIGroup: rbacv1.GroupName}}, metav1.CreateOptions{}))
	m := startMirror(t, configMaps(t, cfg, w.ns),
		&informer.Options[*corev1.ConfigMap]{
			Backoff: reflector.Backoff{First: 20 * time.Millisecond, Most: 200 * time.Millisecond},
		})
	if err := m.WaitSynced(w.ctx); err != nil {
		t.Fatal(err)
	}
	m.untilState(w, reflector.Polling)
	w.update("a", "seen by a list")
	w.create("b")
	w.check(m)
	if h := m.untilState(w, reflector.Polling); source.ReasonOf(h.Err) != source.Denied || h.Lists < 2 {
		t.Errorf("health has no reason for polling: %+v", h)
	}

	role.Rules[0].Verbs = []string{"list", "watch"}
	must[*rbacv1.Role](t)(w.client.RbacV1().Roles(w.ns).Update(w.ctx, role, metav1.UpdateOptions{}))
	m.untilState(w, reflector.Streaming)
	w.update("a", "seen by a watch")
	w.check(m)
}
