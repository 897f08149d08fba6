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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// rightsWorld is two real clusters with objects, roles and bindings, and a daemon that mirrors both. In "us", the names
// of users have a prefix.
type rightsWorld struct {
	t        *testing.T
	url      string
	client   *http.Client // of the daemon
	clusters map[string]*rightsCluster
	users    []*user.DefaultInfo
	said     map[string]*transcript // everything that the daemon has sent, by user
	// phases has the rights of users in each phase of the test, by user; nil while they change.
	phases []map[string]userRights
}

// asAdministrator authenticates every request as one of an administrator, which may impersonate every user.
type asAdministrator struct{}

func (asAdministrator) Authenticate(*http.Request) (user.Info, bool, error) {
	return &user.DefaultInfo{Name: "test", Groups: []string{access.Administrators}}, true, nil
}

const usPrefix = "us-"

// rightsCluster is a real cluster with objects, roles and bindings.
type rightsCluster struct {
	t          *testing.T
	name       string
	admin      *kubernetes.Clientset
	real       *rest.Config
	client     *http.Client // of an administrator, which may impersonate users
	auditLog   string
	logged     int // the length of the audit log before the cluster was mirrored
	namespaces []string
	objects    map[string][]string // names of the first ConfigMaps by namespace
	live       map[string]string   // the changing label of each ConfigMap that exists, by namespace/name
	users      []*user.DefaultInfo
	userPrefix string // of the names of users in this cluster
	rnd        *rand.Rand
	prefix     string // of every name that the test makes
	roles      []string
	bindings   []boundRole // that exist
	made       int         // objects and bindings made so far
}

// newRightsCluster fills the real cluster that all tests share. It is not mirrored yet.
func newRightsCluster(t *testing.T) *rightsCluster {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return fillRightsCluster(t, filled(t), "eu", "", seed)
}

// fillRightsCluster makes namespaces, ConfigMaps, roles, bindings and fifty users in a cluster.
func fillRightsCluster(t *testing.T, cluster *testcluster.Cluster, name, userPrefix string,
	seed uint64) *rightsCluster {
	t.Helper()
	cfg := cluster.Config()
	cfg.QPS, cfg.Burst = 1000, 1000
	conns := connrotation.NewDialer((&net.Dialer{}).DialContext)
	cfg.Dial = conns.DialContext
	t.Cleanup(conns.CloseAll)
	admin, err := kubernetes.NewForConfig(cfg)
	check(t, err)
	client, err := rest.HTTPClientFor(cfg)
	check(t, err)
	log, err := os.ReadFile(cluster.AuditLog())
	check(t, err)
	c := &rightsCluster{t: t, name: name, admin: admin, real: cfg, client: client, auditLog: cluster.AuditLog(),
		logged: len(log), objects: map[string][]string{}, live: map[string]string{}, userPrefix: userPrefix,
		rnd: rand.New(rand.NewPCG(seed, uint64(len(userPrefix)))), prefix: fmt.Sprintf("r%06x", seed%(1<<24))}
	c.fill()
	return c
}

func newRightsWorld(t *testing.T) *rightsWorld {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := &rightsWorld{t: t, said: map[string]*transcript{}, clusters: map[string]*rightsCluster{}}
	first := filled(t)
	var filling sync.WaitGroup // while the other cluster starts
	filling.Go(func() { w.clusters["eu"] = fillRightsCluster(t, first, "eu", "", seed) })
	another := testcluster.StartAnother(t, testcluster.WithoutControllers())
	if filling.Wait(); t.Failed() {
		t.FailNow()
	}
	w.clusters["us"] = fillRightsCluster(t, another, "us", usPrefix, seed)
	w.users = w.clusters["eu"].users
	for _, u := range w.users {
		w.said[u.Name] = &transcript{}
	}
	fl, err := fleet.New(fleet.Options{Include: []string{"configmaps", "namespaces", "*.rbac.authorization.k8s.io"},
		WithoutOpenAPI: true, Logger: slog.New(slog.DiscardHandler)})
	check(t, err)
	check(t, fl.Join("eu", first.Config(), fleet.Origin{Kind: "test"}))
	check(t, fl.Join("us", another.Config(), fleet.Origin{Kind: "test"}))
	rights, err := access.New(fl, access.Options{Config: &access.Config{
		Clusters: []access.ClusterConfig{{Name: "us", UserPrefix: usPrefix, GroupPrefix: usPrefix}}}})
	check(t, err)
	srv, err := server.New(fl, server.Options{Authorizer: rights,
		Access: server.Access{Authenticator: asAdministrator{}}})
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range []func(context.Context) error{fl.Run, rights.Run, srv.Run} {
		wg.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	web := httptest.NewServer(srv)
	w.url = web.URL
	w.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	t.Cleanup(func() {
		w.client.CloseIdleConnections()
		srv.Stop()
		web.Close()
		cancel()
		wg.Wait()
	})
	return w
}

// fill makes namespaces, ConfigMaps, roles, bindings and fifty users.
func (c *rightsCluster) fill() {
	ctx, t := c.t.Context(), c.t
	for i := range 4 {
		ns := fmt.Sprintf("%s-ns%d", c.prefix, i)
		c.namespaces = append(c.namespaces, ns)
		_, err := c.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}},
			metav1.CreateOptions{})
		check(t, err)
		for j := range 4 {
			name := fmt.Sprintf("%s-%s-%d-%d", c.prefix, c.name, i, j)
			if j == 0 {
				name = c.prefix + "-shared"
			}
			c.objects[ns] = append(c.objects[ns], name)
			c.live[ns+"/"+name] = ""
			_, err := c.admin.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}},
				metav1.CreateOptions{})
			check(t, err)
		}
	}
	c.makeRoles()
	for i := range 50 {
		u := &user.DefaultInfo{Name: fmt.Sprintf("%s-user%d", c.prefix, i), Groups: []string{
			fmt.Sprintf("%s-group%d", c.prefix, i%7)}}
		if i%10 == 9 {
			u.Name = fmt.Sprintf("system:serviceaccount:%s:robot%d", c.namespaces[i%4], i)
		}
		c.users = append(c.users, u)
		for range c.rnd.IntN(4) {
			c.bind(u)
		}
	}
	t.Cleanup(c.clean)
}

// clean removes what is not in a namespace.
func (c *rightsCluster) clean() {
	ctx := context.Background()
	for _, b := range c.bindings {
		if b.namespace == "" {
			check(c.t, c.admin.RbacV1().ClusterRoleBindings().Delete(ctx, b.name, metav1.DeleteOptions{}))
		}
	}
	for i := range c.roles[:len(c.roles)-1] {
		err := c.admin.RbacV1().ClusterRoles().Delete(ctx, c.roles[i], metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) {
			check(c.t, err)
		}
	}
}

// rules returns the rules of each role. A role that gives list gives watch too.
func (c *rightsCluster) rules() [][]rbacv1.PolicyRule {
	read, byName := []string{"get", "list", "watch"}, []string{"list", "watch"}
	core := []string{""}
	one := c.objects[c.namespaces[1]][2]
	return [][]rbacv1.PolicyRule{
		{{APIGroups: core, Resources: []string{"configmaps"}, Verbs: read}},
		{{APIGroups: core, Resources: []string{"configmaps"}, Verbs: byName,
			ResourceNames: []string{c.prefix + "-shared", one}}},
		{{APIGroups: core, Resources: []string{"configmaps"}, Verbs: []string{"get"}}},
		{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
		{{APIGroups: core, Resources: []string{"namespaces"}, Verbs: read}},
		{{APIGroups: core, Resources: []string{"namespaces", "configmaps"}, Verbs: byName,
			ResourceNames: []string{c.namespaces[2], c.prefix + "-shared"}}},
		{{APIGroups: core, Resources: []string{"configmaps/status", "pods"}, Verbs: read},
			{NonResourceURLs: []string{"/version", "/api*"}, Verbs: []string{"get"}}},
		{{APIGroups: []string{"apps"}, Resources: []string{"configmaps"}, Verbs: read}},
	}
}

func (c *rightsCluster) makeRoles() {
	for i, rules := range c.rules() {
		name := fmt.Sprintf("%s-role%d", c.prefix, i)
		_, err := c.admin.RbacV1().ClusterRoles().Create(c.t.Context(),
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name},
				Rules: rules}, metav1.CreateOptions{})
		check(c.t, err)
		c.roles = append(c.roles, name)
	}
	c.roles = append(c.roles, c.prefix+"-missing")
}

// boundRole is a binding; its namespace is empty if it is a ClusterRoleBinding.
type boundRole struct{ namespace, name string }

// bind binds a role to a user, to its group or to a name that it does not have in the cluster, in one namespace or in
// all.
func (c *rightsCluster) bind(u *user.DefaultInfo) {
	known := c.known(u)
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: known.Name}
	switch c.rnd.IntN(6) {
	case 0, 1:
		subject.Kind, subject.Name = rbacv1.GroupKind, known.Groups[0]
	case 2:
		subject.Name = strings.TrimPrefix(known.Name, c.userPrefix)
	case 3:
		if parts := strings.Split(u.Name, ":"); len(parts) == 4 {
			subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: parts[2], Name: parts[3]}
		}
	}
	c.made++
	b := boundRole{name: fmt.Sprintf("%s-%d", c.prefix, c.made)}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.roles[c.rnd.IntN(len(c.roles))]}
	var err error
	if meta := (metav1.ObjectMeta{Name: b.name}); c.rnd.IntN(4) == 0 {
		_, err = c.admin.RbacV1().ClusterRoleBindings().Create(c.t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{subject}, RoleRef: ref}, metav1.CreateOptions{})
	} else {
		b.namespace = c.namespaces[c.rnd.IntN(len(c.namespaces))]
		_, err = c.admin.RbacV1().RoleBindings(b.namespace).Create(c.t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{subject}, RoleRef: ref}, metav1.CreateOptions{})
	}
	check(c.t, err)
	c.bindings = append(c.bindings, b)
}

// known returns a user under its names in the cluster.
func (c *rightsCluster) known(u *user.DefaultInfo) *user.DefaultInfo {
	out := &user.DefaultInfo{Name: c.userPrefix + u.Name}
	for _, g := range u.Groups {
		out.Groups = append(out.Groups, c.userPrefix+g)
	}
	return out
}

// answer is what a server gives.
type answer struct {
	code    int
	names   []string          // namespace/name, sorted
	labels  map[string]string // the label that changes at each update, by namespace/name
	message string
	next    string // the continue token
	version string
	body    string
	header  http.Header
}

// openAs sends a GET as a user. Without impersonation, the user is an administrator.
func openAs(ctx context.Context, client *http.Client, url, accept string, u *user.DefaultInfo) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	if slices.Contains(u.Groups, access.Administrators) {
		return client.Do(r)
	}
	r.Header.Set("Impersonate-User", u.Name)
	for _, g := range u.Groups {
		r.Header.Add("Impersonate-Group", g)
	}
	r.Header.Add("Impersonate-Group", user.AllAuthenticated)
	return client.Do(r)
}

func askAs(ctx context.Context, client *http.Client, url, accept string, u *user.DefaultInfo) (answer, error) {
	resp, err := openAs(ctx, client, url, accept, u)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	return readAnswer(resp, b)
}

func readAnswer(resp *http.Response, b []byte) (answer, error) {
	var list struct {
		Message  string
		Metadata metav1.ListMeta
		Items    []metav1.PartialObjectMetadata
		Rows     []struct{ Object metav1.PartialObjectMetadata }
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return answer{}, fmt.Errorf("%w: %s", err, b)
	}
	for _, row := range list.Rows {
		list.Items = append(list.Items, row.Object)
	}
	out := answer{code: resp.StatusCode, message: list.Message, body: string(b), header: resp.Header,
		labels: map[string]string{}, next: list.Metadata.Continue, version: list.Metadata.ResourceVersion}
	for _, it := range list.Items {
		out.names = append(out.names, it.Namespace+"/"+it.Name)
		out.labels[it.Namespace+"/"+it.Name] = it.Labels[changing]
	}
	slices.Sort(out.names)
	return out, nil
}

// ask sends a GET to the daemon, and records the answer.
func (w *rightsWorld) ask(path string, u *user.DefaultInfo) answer {
	w.t.Helper()
	phase := w.said[u.Name].phase()
	a, err := askAs(w.t.Context(), w.client, w.url+path, "", u)
	check(w.t, err)
	w.said[u.Name].add(phase, path, headerText(a.header)+a.body+decoded(a.next))
	return a
}

// askTable asks for a list as a Table, and for its pages.
func (w *rightsWorld) askTable(path string, u *user.DefaultInfo) (names []string) {
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io"
	for next := ""; ; {
		page := path + "limit=3&continue=" + url.QueryEscape(next)
		phase := w.said[u.Name].phase()
		a, err := askAs(w.t.Context(), w.client, w.url+page, table, u)
		check(w.t, err)
		w.said[u.Name].add(phase, page, headerText(a.header)+a.body+decoded(a.next))
		names = append(names, a.names...)
		if next = a.next; next == "" {
			slices.Sort(names)
			return names
		}
	}
}

// ask sends a GET to the real server.
func (c *rightsCluster) ask(path string, known *user.DefaultInfo) answer {
	c.t.Helper()
	a, err := askAs(c.t.Context(), c.client, c.real.Host+path, "", known)
	check(c.t, err)
	return a
}

// seen is what the real server gives a user of a resource: in all namespaces, by namespace and by name.
type seen struct {
	objects map[string]string // the changing label by namespace/name; only of objects that the test made
	whole   map[string]bool   // namespaces that the user may list
	names   map[string]bool   // namespace/name of objects that the user may list by name, whether they exist or not
}

// can reports whether the user may see an object.
func (s *seen) can(namespace, name string) bool {
	return s.whole[namespace] || s.names[namespace+"/"+name]
}

// visible asks the real server what it gives a user.
func (c *rightsCluster) visible(resource string, u *user.DefaultInfo) *seen {
	known := c.known(u)
	out := &seen{objects: map[string]string{}, whole: map[string]bool{}, names: map[string]bool{}}
	try := func(path string) bool {
		a := c.ask(path, known)
		for name, label := range a.labels {
			if strings.Contains(name, c.prefix) {
				out.objects[name] = label
			}
		}
		return a.code == http.StatusOK
	}
	byName := func(path, namespace string, names []string) {
		for _, name := range names {
			if try(path + "?fieldSelector=" + url.QueryEscape("metadata.name="+name)) {
				out.names[namespace+"/"+name] = true
			}
		}
	}
	switch {
	case try("/api/v1/" + resource):
		for _, ns := range append([]string{""}, c.namespaces...) {
			out.whole[ns] = true
		}
	case resource == "namespaces":
		byName("/api/v1/namespaces", "", c.namespaces)
	default:
		for _, ns := range c.namespaces {
			path := "/api/v1/namespaces/" + ns + "/" + resource
			if out.whole[ns] = try(path); !out.whole[ns] {
				byName(path, ns, c.objects[ns][:4]) // roles name no others
			}
		}
	}
	return out
}

// own leaves only names that the test made.
func (w *rightsWorld) own(names []string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return !strings.Contains(n, w.clusters["eu"].prefix) })
}

// Fifty users, on two real clusters: the lists, the single objects and the refusals that they get equal those of the
// real servers. So do the states of their watches after objects, roles and bindings have changed. Nothing that the
// daemon has sent names an object that the user may not see, and no request of a user reaches a cluster. The numbers
// of changes are small, and large with MIRADOR_NIGHTLY=1.
func TestFiftyUsersSeeWhatTheRealServersGiveThem(t *testing.T) {
	w := newRightsWorld(t)
	until(t, func() string { // everything is mirrored
		root := &user.DefaultInfo{Name: "root", Groups: []string{access.Administrators}}
		a, err := askAs(t.Context(), w.client, w.url+"/fleet/api/v1/configmaps?complete=true", "", root)
		check(t, err)
		b, err := askAs(t.Context(), w.client, w.url+"/fleet/api/v1/configmaps?complete=true", "", w.users[0])
		check(t, err)
		if len(w.own(a.names)) < 32 || b.code == http.StatusServiceUnavailable {
			return a.body + b.body
		}
		return ""
	})
	before := w.eachUser(w.compare)
	w.begin(before)
	w.watchThroughChanges(before)
	w.nothingHidden()
	for _, c := range w.clusters {
		c.noRequests()
	}
}

// userRights is what a user may see, by cluster and resource.
type userRights map[string]map[string]*seen

// eachUser calls a function for each user, eight at a time, and returns the results by user.
func (w *rightsWorld) eachUser(do func(u *user.DefaultInfo) userRights) map[string]userRights {
	results := make([]userRights, len(w.users))
	turns := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for i, u := range w.users {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			results[i] = do(u)
		})
	}
	wg.Wait()
	all := map[string]userRights{}
	for i, u := range w.users {
		all[u.Name] = results[i]
	}
	return all
}

// rightsOf asks the real servers what a user may see.
func (w *rightsWorld) rightsOf(u *user.DefaultInfo) userRights {
	out := userRights{}
	for name, c := range w.clusters {
		out[name] = map[string]*seen{}
		for _, resource := range []string{"configmaps", "namespaces"} {
			out[name][resource] = c.visible(resource, u)
		}
	}
	return out
}

// compare compares everything that a user gets with what the real servers give.
func (w *rightsWorld) compare(u *user.DefaultInfo) userRights {
	t, rights := w.t, w.rightsOf(u)
	for _, resource := range []string{"configmaps", "namespaces"} {
		var union []string
		for name, c := range w.clusters {
			known := c.known(u)
			want := slices.Sorted(maps.Keys(rights[name][resource].objects))
			got := w.ask("/clusters/"+name+"/api/v1/"+resource+"?filtered=true", u)
			if !slices.Equal(w.own(got.names), want) ||
				(got.code == http.StatusForbidden) != (len(got.names) == 0 && got.code != 200) {
				t.Errorf("%s of %s as %s: %d %v, want %v", resource, name, known.Name, got.code, w.own(got.names), want)
			}
			for _, object := range want {
				union = append(union, inFleet(name, object))
			}
			paths := []string{"/api/v1/" + resource}
			if resource == "namespaces" {
				paths = append(paths, "/api/v1/namespaces/"+c.namespaces[2], "/version", "/api/v1/nodes",
					"/apis/apps/v1/deployments")
			} else {
				paths = append(paths, "/api/v1/namespaces/"+c.namespaces[1]+"/configmaps",
					"/api/v1/namespaces/"+c.namespaces[1]+"/configmaps/"+c.prefix+"-shared")
			}
			for _, path := range paths {
				mine, real := w.ask("/clusters/"+name+path, u), c.ask(path, known)
				mine.message = strings.ReplaceAll(mine.message, fmt.Sprintf("User %q", u.Name), fmt.Sprintf("User %q", known.Name))
				// not included here
				notMirrored := real.code == http.StatusOK && mine.code == http.StatusNotFound && len(mine.names) == 0
				if !notMirrored && (mine.code != real.code || mine.message != real.message ||
					!slices.Equal(w.own(mine.names), w.own(real.names))) {
					t.Errorf("%s of %s as %s: %d %v %s, want %d %v %s", path, name, known.Name, mine.code, w.own(mine.names),
						mine.message, real.code, w.own(real.names), real.message)
				}
			}
		}
		slices.Sort(union)
		got := w.ask("/fleet/api/v1/"+resource, u)
		if names := w.own(got.names); !slices.Equal(names, union) {
			t.Errorf("%s of the fleet as %s: %d %v, want %v", resource, u.Name, got.code, names, union)
		}
		if names := w.own(w.askTable("/fleet/api/v1/"+resource+"?", u)); !slices.Equal(names, union) {
			t.Errorf("%s of the fleet as %s, as pages of a Table: %v, want %v", resource, u.Name, names, union)
		}
		if len(union) > 0 && got.header.Get("Mirador-Filtered") == "" && !strings.Contains(got.body, "kube-system") {
			t.Errorf("%s of the fleet as %s are not marked as filtered", resource, u.Name)
		}
	}
	return rights
}

// inFleet returns the name at /fleet of an object that a cluster lists as namespace/name.
func inFleet(cluster, name string) string {
	if namespace, own, _ := strings.Cut(name, "/"); namespace != "" {
		return cluster + "." + namespace + "/" + own
	} else {
		return "/" + cluster + "." + own // a namespace
	}
}

// noRequests fails if the mirror has sent the cluster anything but lists, watches and discovery since the cluster was
// filled, and one request at its join to find out whether RBAC alone decides.
func (c *rightsCluster) noRequests() {
	log, err := os.ReadFile(c.auditLog)
	check(c.t, err)
	const detection = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
	detections := 0
	for line := range strings.Lines(string(log[c.logged:])) {
		var e struct {
			Verb, UserAgent, RequestURI string
		}
		check(c.t, json.Unmarshal([]byte(line), &e))
		if e.RequestURI == detection && strings.Contains(e.UserAgent, "mirador") {
			if detections++; detections > 1 {
				c.t.Errorf("the mirror sent %d %s to %s", detections, e.RequestURI, c.name)
			}
			continue
		}
		if strings.Contains(e.UserAgent, "mirador") && !slices.Contains([]string{"list", "watch", "get"}, e.Verb) {
			c.t.Errorf("the mirror sent %s %s to %s", e.Verb, e.RequestURI, c.name)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
