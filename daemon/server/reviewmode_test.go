package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/informertest"
)

// runAll runs functions until the test ends.
func runAll(t *testing.T, run ...func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range run {
		wg.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

func TestReviewsOfARealServerDecideAsItsRBACDoes(t *testing.T) {
	w := newRightsCluster(t)
	fl, err := fleet.New(fleet.Options{Include: []string{"namespaces", "*.rbac.authorization.k8s.io"},
		WithoutOpenAPI: true, Logger: slog.New(slog.DiscardHandler)})
	check(t, err)
	for _, name := range []string{"local", "asked"} {
		check(t, fl.Join(name, filled(t).Config(), fleet.Origin{Kind: "test"}))
	}
	rights, err := access.New(fl, access.Options{Config: &access.Config{Clusters: []access.ClusterConfig{
		{Name: "asked", Authorization: access.ModeReview}, {Name: "local", Authorization: access.ModeRBAC}}}})
	check(t, err)
	runAll(t, fl.Run, rights.Run)
	configMaps := schema.GroupResource{Resource: "configmaps"}
	until(t, func() string { // roles, bindings and namespaces are mirrored
		for _, name := range []string{"local", "asked"} {
			if _, err := rights.Visible(t.Context(), w.users[0], name, "list", configMaps, true); err != nil {
				return err.Error()
			}
		}
		return ""
	})
	var questions []access.Attributes
	for _, verb := range []string{"get", "list", "delete"} {
		for _, ns := range append([]string{""}, w.namespaces[:2]...) {
			for _, name := range []string{"", w.prefix + "-shared"} {
				questions = append(questions, access.Attributes{ResourceRequest: true, Verb: verb, APIVersion: "v1",
					Resource: "configmaps", Namespace: ns, Name: name})
			}
		}
	}
	questions = append(questions, access.Attributes{Verb: "get", Path: "/version"},
		access.Attributes{Verb: "get", Path: "/metrics"}, access.Attributes{ResourceRequest: true, Verb: "list",
			APIGroup: "apps", APIVersion: "v1", Resource: "configmaps"})
	users := append(slices.Clone(w.users), &user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup}})
	allowed := 0
	for _, u := range users {
		for _, q := range questions {
			local, err := rights.Decide(t.Context(), u, "local", q)
			check(t, err)
			asked, err := rights.Decide(t.Context(), u, "asked", q)
			check(t, err)
			if local.Allowed != asked.Allowed {
				t.Errorf("%+v as %v: %+v by RBAC, %+v by review", q, u, local, asked)
			}
			if asked.Allowed {
				allowed++
			}
		}
		local, err := rights.Visible(t.Context(), u, "local", "list", configMaps, true)
		check(t, err)
		asked, err := rights.Visible(t.Context(), u, "asked", "list", configMaps, true)
		check(t, err)
		if local.All != asked.All || !local.All && !slices.Equal(local.Namespaces, asked.Namespaces) ||
			len(asked.Names)+len(asked.Keys) > 0 {
			t.Errorf("as %v: %+v by RBAC, %+v by review", u, local, asked)
		}
	}
	if all := len(users) * len(questions); allowed == 0 || allowed == all {
		t.Errorf("%d of %d questions are allowed", allowed, all)
	}
}

// Neither roles nor bindings are mirrored here: only the cluster itself can know of the withdrawal.
func TestAWatchEndsWhenAClusterThatIsAskedWithdrawsARight(t *testing.T) {
	w := newRightsCluster(t)
	ns, name := w.namespaces[0], w.prefix+"-ann"
	_, err := w.admin.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.prefix + "-role0"}},
		metav1.CreateOptions{})
	check(t, err)
	fl, err := fleet.New(fleet.Options{Include: []string{"configmaps", "namespaces"}, WithoutOpenAPI: true,
		Logger: slog.New(slog.DiscardHandler)})
	check(t, err)
	check(t, fl.Join("eu", filled(t).Config(), fleet.Origin{Kind: "test"}))
	rights, err := access.New(fl, access.Options{Mode: access.ModeReview})
	check(t, err)
	srv, err := server.New(fl, server.Options{Authorizer: rights, StartGrace: -1,
		Access: server.Access{Authenticator: byHeader{}}})
	check(t, err)
	runAll(t, fl.Run, rights.Run, srv.Run)
	web := httptest.NewServer(srv)
	t.Cleanup(func() {
		srv.Stop()
		web.Close()
	})
	d := memoryDaemon{&server.InMemory{Server: srv, URL: web.URL, Client: web.Client()}}
	views := []string{"/fleet/api/v1/configmaps", "/clusters/eu/api/v1/configmaps?filtered=true",
		"/clusters/eu/api/v1/namespaces/" + ns + "/configmaps"}
	for _, view := range views {
		until(t, func() string {
			objects, _, text := d.podsAs(t, name, view)
			if len(objects) != len(w.objects[ns]) {
				return fmt.Sprintf("%s: %v %s", view, objects, text)
			}
			return ""
		})
	}
	var watches []<-chan string
	for _, view := range views {
		separator := "?"
		if strings.Contains(view, "?") {
			separator = "&"
		}
		lines := d.watchAs(t, name, view+separator+"watch=true")
		for range w.objects[ns] {
			if got := <-lines; !strings.Contains(got, `"ADDED"`) {
				t.Fatalf("%s: got %s", view, got)
			}
		}
		watches = append(watches, lines)
	}
	check(t, w.admin.RbacV1().RoleBindings(ns).Delete(t.Context(), name, metav1.DeleteOptions{}))
	began := time.Now()
	for i, lines := range watches {
		got := <-lines
		var event struct {
			Type   string
			Object metav1.Status
		}
		if err := json.Unmarshal([]byte(got), &event); err != nil || event.Type != "ERROR" || event.Object.Code != 410 {
			t.Fatalf("%s: got %s", views[i], got)
		}
		if last, open := <-lines; open {
			t.Errorf("%s: after the end: %s", views[i], last)
		}
		t.Logf("%s ended after %v", views[i], time.Since(began))
	}
}

// askedCluster is a cluster in memory that answers reviews.
type askedCluster struct {
	*informertest.Server
	evaluationError string // of a SelfSubjectRulesReview

	mu      sync.Mutex
	allowed map[string]bool // user, verb and namespace
	reviews map[string]int  // by kind
}

func (c *askedCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		c.Server.ServeHTTP(w, r)
		return
	}
	var review authorizationv1.SubjectAccessReview
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reviews[review.Kind]++
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	if review.Kind == "SelfSubjectRulesReview" {
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"status":{"incomplete":true,"evaluationError":%q}}`, review.APIVersion,
			review.Kind, c.evaluationError)
		return
	}
	a := review.Spec.ResourceAttributes
	review.Status.Allowed = a != nil && c.allowed[review.Spec.User+" "+a.Verb+" "+a.Namespace]
	json.NewEncoder(w).Encode(review) // to memory
}

// reportOf returns the report about the one cluster.
func (s memoryDaemon) reportOf(t *testing.T, name string) (report server.ClusterReport) {
	t.Helper()
	resp := s.openAs(t, "administrator", "/clusters/"+name)
	defer resp.Body.Close()
	check(t, json.NewDecoder(resp.Body).Decode(&report))
	return report
}

func TestAClusterWithAWebhookAuthorizerIsAsked(t *testing.T) {
	for text, mode := range map[string]access.Mode{
		"":                              access.ModeRBAC,
		`roles "web/missing" not found`: access.ModeRBAC,
		"webhook authorizer does not support user rule resolution": access.ModeReview,
	} {
		t.Run(string(mode)+" "+text, func(t *testing.T) {
			eu := &askedCluster{Server: informertest.NewServer(), evaluationError: text, reviews: map[string]int{},
				allowed: map[string]bool{"ann list web": true}}
			namespace := func(name string) *unstructured.Unstructured {
				return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
					"metadata": map[string]any{"name": name}}}
			}
			create(t, eu.Server, namespace("web"), namespace("shop"), pod("web", "a", nil), pod("shop", "c", nil),
				clusterRole("pods", rule([]any{"list"}, []any{"pods"})), binding("shop", "ann", "pods", "ann"))
			d := memoryDaemon{server.NewInMemoryWithRights(t, map[string]http.Handler{"eu": eu},
				fleet.Options{Include: []string{"pods", "namespaces", "*.rbac.authorization.k8s.io"}, WithoutOpenAPI: true},
				server.Options{StartGrace: -1, Access: server.Access{Token: "administrator"}}, byHeader{})}
			d.Start()
			want, reviews := "eu.shop/c", map[string]int{"SelfSubjectRulesReview": 1}
			if mode == access.ModeReview {
				want, reviews["SubjectAccessReview"] = "eu.web/a", 3 // at cluster scope, web and shop
			}
			until(t, func() string {
				pods, _, text := d.podsAs(t, "ann", "/fleet/api/v1/pods?complete=true")
				if strings.Join(pods, " ") != want {
					return fmt.Sprint(pods, text)
				}
				return ""
			})
			if got := d.reportOf(t, "eu").Authorization; got != string(mode) {
				t.Errorf("the report says %q", got)
			}
			eu.mu.Lock()
			defer eu.mu.Unlock()
			for _, kind := range []string{"SelfSubjectRulesReview", "SubjectAccessReview"} {
				// The list may have been tried before everything was mirrored.
				if got := eu.reviews[kind]; got < reviews[kind] || kind == "SelfSubjectRulesReview" && got != 1 ||
					mode == access.ModeRBAC && got != reviews[kind] {
					t.Errorf("%d of kind %s were sent, want %d", got, kind, reviews[kind])
				}
			}
		})
	}
}
