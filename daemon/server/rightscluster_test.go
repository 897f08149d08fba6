package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
)

// rightsWorld is a real cluster with roles, bindings and objects, mirrored under two names. In "us", the names of
// users have a prefix, so that each user has different rights in the two.
type rightsWorld struct {
	t          *testing.T
	admin      *kubernetes.Clientset
	real       *rest.Config
	url        string
	namespaces []string
	objects    map[string][]string // names of ConfigMaps by namespace
	users      []*user.DefaultInfo
	rnd        *rand.Rand
	prefix     string // of every name that the test makes
}

// byImpersonation authenticates the user that the impersonation headers name, for tests.
type byImpersonation struct{}

func (byImpersonation) Authenticate(r *http.Request) (user.Info, bool, error) {
	name := r.Header.Get("Impersonate-User")
	groups := append(slices.Clone(r.Header.Values("Impersonate-Group")), user.AllAuthenticated)
	return &user.DefaultInfo{Name: name, Groups: groups}, name != "", nil
}

const usPrefix = "us-"

// newRightsCluster fills the real cluster. It is not mirrored yet.
func newRightsCluster(t *testing.T) *rightsWorld {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	cfg := filled(t).Config()
	cfg.QPS, cfg.Burst = 1000, 1000
	conns := connrotation.NewDialer((&net.Dialer{}).DialContext)
	cfg.Dial = conns.DialContext
	t.Cleanup(conns.CloseAll)
	admin, err := kubernetes.NewForConfig(cfg)
	check(t, err)
	w := &rightsWorld{t: t, admin: admin, real: cfg, objects: map[string][]string{},
		rnd: rand.New(rand.NewPCG(seed, 1)), prefix: fmt.Sprintf("r%06x", seed%(1<<24))}
	w.fill()
	return w
}

func newRightsWorld(t *testing.T) *rightsWorld {
	t.Helper()
	w := newRightsCluster(t)
	fl, err := fleet.New(fleet.Options{Include: []string{"configmaps", "namespaces", "*.rbac.authorization.k8s.io"},
		WithoutOpenAPI: true, Logger: slog.New(slog.DiscardHandler)})
	check(t, err)
	for _, name := range []string{"eu", "us"} {
		check(t, fl.Join(name, filled(t).Config(), fleet.Origin{Kind: "test"}))
	}
	rights, err := access.New(fl, access.Options{Config: &access.Config{
		Clusters: []access.ClusterConfig{{Name: "us", UserPrefix: usPrefix, GroupPrefix: usPrefix}}}})
	check(t, err)
	srv, err := server.New(fl, server.Options{Authorizer: rights,
		Access: server.Access{Authenticator: byImpersonation{}}})
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range []func(context.Context) error{fl.Run, rights.Run, srv.Run} {
		wg.Go(func() { check(t, run(ctx)) })
	}
	web := httptest.NewServer(srv)
	w.url = web.URL
	t.Cleanup(func() {
		srv.Stop()
		web.Close()
		cancel()
		wg.Wait()
	})
	return w
}

// fill makes namespaces, ConfigMaps, roles, bindings and fifty users.
func (w *rightsWorld) fill() {
	ctx, t := w.t.Context(), w.t
	for i := range 4 {
		ns := fmt.Sprintf("%s-ns%d", w.prefix, i)
		w.namespaces = append(w.namespaces, ns)
		_, err := w.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}},
			metav1.CreateOptions{})
		check(t, err)
		for j := range 4 {
			name := fmt.Sprintf("%s-%d-%d", w.prefix, i, j)
			if j == 0 {
				name = w.prefix + "-shared"
			}
			w.objects[ns] = append(w.objects[ns], name)
			_, err := w.admin.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}},
				metav1.CreateOptions{})
			check(t, err)
		}
	}
	roles := w.roles()
	for i := range 50 {
		u := &user.DefaultInfo{Name: fmt.Sprintf("%s-user%d", w.prefix, i), Groups: []string{
			fmt.Sprintf("%s-group%d", w.prefix, i%7)}}
		if i%10 == 9 {
			u.Name = fmt.Sprintf("system:serviceaccount:%s:robot%d", w.namespaces[i%4], i)
		}
		w.users = append(w.users, u)
		for n := range w.rnd.IntN(4) {
			w.bind(fmt.Sprintf("%s-%d-%d", w.prefix, i, n), roles[w.rnd.IntN(len(roles))], u)
		}
	}
}

func (w *rightsWorld) roles() []string {
	read := []string{"get", "list", "watch"}
	core := []string{""}
	one := w.objects[w.namespaces[1]][2]
	sets := [][]rbacv1.PolicyRule{
		{{APIGroups: core, Resources: []string{"configmaps"}, Verbs: read}},
		{{APIGroups: core, Resources: []string{"configmaps"}, Verbs: []string{"list"},
			ResourceNames: []string{w.prefix + "-shared", one}}},
		{{APIGroups: core, Resources: []string{"configmaps"}, Verbs: []string{"get"}}},
		{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
		{{APIGroups: core, Resources: []string{"namespaces"}, Verbs: read}},
		{{APIGroups: core, Resources: []string{"namespaces", "configmaps"}, Verbs: []string{"list"},
			ResourceNames: []string{w.namespaces[2], w.prefix + "-shared"}}},
		{{APIGroups: core, Resources: []string{"configmaps/status", "pods"}, Verbs: read},
			{NonResourceURLs: []string{"/version", "/api*"}, Verbs: []string{"get"}}},
		{{APIGroups: []string{"apps"}, Resources: []string{"configmaps"}, Verbs: read}},
	}
	var names []string
	for i, rules := range sets {
		name := fmt.Sprintf("%s-role%d", w.prefix, i)
		_, err := w.admin.RbacV1().ClusterRoles().Create(w.t.Context(),
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name},
				Rules: rules}, metav1.CreateOptions{})
		check(w.t, err)
		w.t.Cleanup(func() {
			check(w.t, w.admin.RbacV1().ClusterRoles().Delete(context.Background(), name, metav1.DeleteOptions{}))
		})
		names = append(names, name)
	}
	return append(names, w.prefix+"-missing")
}

// bind binds a role to a user, to its group or to its name in us, in one namespace or in all.
func (w *rightsWorld) bind(name, role string, u *user.DefaultInfo) {
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: u.Name}
	system := strings.HasPrefix(u.Name, "system:")
	switch w.rnd.IntN(4) {
	case 0:
		subject.Kind, subject.Name = rbacv1.GroupKind, u.Groups[0]
	case 1, 2:
		if !system {
			subject.Name = usPrefix + u.Name
		} else {
			parts := strings.Split(u.Name, ":")
			subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: parts[2], Name: parts[3]}
		}
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	if w.rnd.IntN(4) == 0 {
		_, err := w.admin.RbacV1().ClusterRoleBindings().Create(w.t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject}, RoleRef: ref},
			metav1.CreateOptions{})
		check(w.t, err)
		w.t.Cleanup(func() {
			check(w.t, w.admin.RbacV1().ClusterRoleBindings().Delete(context.Background(), name, metav1.DeleteOptions{}))
		})
		return
	}
	_, err := w.admin.RbacV1().RoleBindings(w.namespaces[w.rnd.IntN(len(w.namespaces))]).Create(w.t.Context(),
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject}, RoleRef: ref},
		metav1.CreateOptions{})
	check(w.t, err)
}

// inUS returns a user under its names in us.
func inUS(u *user.DefaultInfo) *user.DefaultInfo {
	out := &user.DefaultInfo{Name: usPrefix + u.Name}
	for _, g := range u.Groups {
		out.Groups = append(out.Groups, usPrefix+g)
	}
	return out
}

// answer is what a server gives.
type answer struct {
	code    int
	names   []string // namespace/name, sorted
	message string
	body    string
	header  http.Header
}

func askAs(t *testing.T, client *http.Client, at, path string, u *user.DefaultInfo) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+path, nil)
	check(t, err)
	r.Header.Set("Impersonate-User", u.Name)
	for _, g := range u.Groups {
		r.Header.Add("Impersonate-Group", g)
	}
	r.Header.Add("Impersonate-Group", user.AllAuthenticated)
	resp, err := client.Do(r)
	check(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	check(t, err)
	var list struct {
		Message string
		Items   []metav1.PartialObjectMetadata
	}
	check(t, json.Unmarshal(b, &list))
	out := answer{code: resp.StatusCode, message: list.Message, body: string(b), header: resp.Header}
	for _, it := range list.Items {
		out.names = append(out.names, it.Namespace+"/"+it.Name)
	}
	slices.Sort(out.names)
	return out
}

// visibleAt is the union of what the real server gives a user, in all namespaces, by namespace and by name. Only names
// that the test made count.
func (w *rightsWorld) visibleAt(client *http.Client, resource string, u *user.DefaultInfo) []string {
	found := map[string]bool{}
	try := func(path string) bool {
		a := askAs(w.t, client, w.real.Host, path, u)
		for _, n := range a.names {
			found[n] = true
		}
		return a.code == http.StatusOK
	}
	byName := func(path string, names []string) {
		for _, name := range names {
			try(path + "?fieldSelector=" + url.QueryEscape("metadata.name="+name))
		}
	}
	switch {
	case try("/api/v1/" + resource):
	case resource == "namespaces":
		byName("/api/v1/namespaces", w.namespaces)
	default:
		for _, ns := range w.namespaces {
			if path := "/api/v1/namespaces/" + ns + "/" + resource; !try(path) {
				byName(path, w.objects[ns])
			}
		}
	}
	return w.own(slices.Sorted(maps.Keys(found)))
}

// own leaves only names that the test made.
func (w *rightsWorld) own(names []string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return !strings.Contains(n, w.prefix) })
}

func TestFiftyUsersSeeWhatTheRealServerGivesThem(t *testing.T) {
	w := newRightsWorld(t)
	client, err := rest.HTTPClientFor(w.real)
	check(t, err)
	plain := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	defer plain.CloseIdleConnections()
	before, err := os.ReadFile(filled(t).AuditLog())
	check(t, err)
	until(t, func() string { // everything is mirrored
		a := askAs(t, plain, w.url, "/clusters/us/api/v1/configmaps?filtered=true", &user.DefaultInfo{Name: "root",
			Groups: []string{access.Administrators}})
		b := askAs(t, plain, w.url, "/fleet/api/v1/configmaps?complete=true", w.users[0])
		if len(w.own(a.names)) < 16 || b.code == http.StatusServiceUnavailable {
			return a.body + b.body
		}
		return ""
	})
	var wg sync.WaitGroup
	turns := make(chan struct{}, 8)
	for _, u := range w.users {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			w.compare(client, plain, u)
		})
	}
	wg.Wait()
	w.noRequests(len(before))
}

// compare compares everything that a user gets with what the real server gives.
func (w *rightsWorld) compare(client, plain *http.Client, u *user.DefaultInfo) {
	t := w.t
	as := map[string]*user.DefaultInfo{"eu": u, "us": inUS(u)}
	for _, resource := range []string{"configmaps", "namespaces"} {
		var union []string
		for cluster, known := range as {
			want := w.visibleAt(client, resource, known)
			got := askAs(t, plain, w.url, "/clusters/"+cluster+"/api/v1/"+resource+"?filtered=true", u)
			if !slices.Equal(w.own(got.names), want) ||
				(got.code == http.StatusForbidden) != (len(got.names) == 0 && got.code != 200) {
				t.Errorf("%s of %s as %s: %d %v, want %v", resource, cluster, known.Name, got.code, w.own(got.names), want)
			}
			w.nothingElse(got, want, resource)
			for _, name := range want {
				union = append(union, inFleet(cluster, name))
			}
			paths := []string{"/api/v1/" + resource, "/api/v1/namespaces/" + w.namespaces[1] + "/configmaps",
				"/api/v1/namespaces/" + w.namespaces[1] + "/configmaps/" + w.prefix + "-shared",
				"/api/v1/namespaces/" + w.namespaces[2], "/version", "/api/v1/nodes", "/apis/apps/v1/deployments"}
			for _, path := range paths {
				mine, real := askAs(t, plain, w.url, "/clusters/"+cluster+path, u), askAs(t, client, w.real.Host, path, known)
				mine.message = strings.ReplaceAll(mine.message, fmt.Sprintf("User %q", u.Name), fmt.Sprintf("User %q", known.Name))
				// not included here
				notMirrored := real.code == http.StatusOK && mine.code == http.StatusNotFound && len(mine.names) == 0
				if !notMirrored && (mine.code != real.code || mine.message != real.message ||
					!slices.Equal(w.own(mine.names), w.own(real.names))) {
					t.Errorf("%s of %s as %s: %d %v %s, want %d %v %s", path, cluster, known.Name, mine.code, w.own(mine.names),
						mine.message, real.code, w.own(real.names), real.message)
				}
			}
		}
		slices.Sort(union)
		got := askAs(t, plain, w.url, "/fleet/api/v1/"+resource, u)
		if names := w.own(got.names); !slices.Equal(names, union) {
			t.Errorf("%s of the fleet as %s: %d %v, want %v", resource, u.Name, got.code, names, union)
		}
		w.nothingElse(got, union, resource)
		if len(union) > 0 && got.header.Get("Mirador-Filtered") == "" && !strings.Contains(got.body, "kube-system") {
			t.Errorf("%s of the fleet as %s are not marked as filtered", resource, u.Name)
		}
	}
}

// inFleet returns the name at /fleet of an object that a cluster lists as namespace/name.
func inFleet(cluster, name string) string {
	if namespace, own, _ := strings.Cut(name, "/"); namespace != "" {
		return cluster + "." + namespace + "/" + own
	} else {
		return "/" + cluster + "." + own // a namespace
	}
}

// nothingElse fails if an answer contains the name of a ConfigMap that is not visible.
func (w *rightsWorld) nothingElse(got answer, visible []string, resource string) {
	if resource != "configmaps" {
		return
	}
	for _, names := range w.objects {
		for _, name := range names[1:] { // the first one has the same name everywhere
			seen := slices.ContainsFunc(visible, func(v string) bool { return strings.HasSuffix(v, "/"+name) })
			if !seen && strings.Contains(got.body, name) {
				w.t.Errorf("the answer names %s, which is not visible: %s", name, got.body)
			}
		}
	}
}

// noRequests fails if the mirror has sent the cluster anything but lists, watches and discovery since a position of
// the audit log, and one request per join to find out whether RBAC alone decides.
func (w *rightsWorld) noRequests(since int) {
	log, err := os.ReadFile(filled(w.t).AuditLog())
	check(w.t, err)
	const joined, detection = 2, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
	detections := 0
	for line := range strings.Lines(string(log[since:])) {
		var e struct {
			Verb, UserAgent, RequestURI string
		}
		check(w.t, json.Unmarshal([]byte(line), &e))
		if e.RequestURI == detection && strings.Contains(e.UserAgent, "mirador") {
			if detections++; detections > joined {
				w.t.Errorf("the mirror sent %d %s", detections, e.RequestURI)
			}
			continue
		}
		if strings.Contains(e.UserAgent, "mirador") && !slices.Contains([]string{"list", "watch", "get"}, e.Verb) {
			w.t.Errorf("the mirror sent %s %s", e.Verb, e.RequestURI)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
