package server_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/access"
)

// changing is the label that has another value after each update, and selected the one by which some watches select.
const changing, selected = "n", "even"

// transcript is everything that the daemon has sent to a user.
type transcript struct {
	mu   sync.Mutex
	now  int
	sent []sent
}

// sent is an answer, or a line of a watch.
type sent struct {
	phase int // in which the request was sent, or the line was received
	path  string
	text  string
}

func (r *transcript) add(phase int, path, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, sent{phase, path, text})
}

func (r *transcript) phase() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *transcript) begin(phase int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = phase
}

func headerText(h http.Header) string {
	var b strings.Builder
	h.Write(&b) // never fails
	return b.String()
}

// decoded returns what a continue token is in base64, if it is.
func decoded(token string) string {
	for _, encoding := range []*base64.Encoding{base64.RawURLEncoding, base64.URLEncoding, base64.StdEncoding} {
		if b, err := encoding.DecodeString(token); err == nil {
			return string(b)
		}
	}
	return ""
}

// watchKind is how a client watches.
type watchKind struct {
	path    string
	accept  string
	initial bool // it begins with sendInitialEvents, and not with a list
	// want returns what the client has to have in the end.
	want func(w *rightsWorld, r userRights) map[string]string
}

const (
	asTable    = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asMetadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
)

// watchKinds returns all kinds of watches.
func (w *rightsWorld) watchKinds() []watchKind {
	all := func(w *rightsWorld, r userRights) map[string]string { return w.fleetState(r, "configmaps") }
	ofOne := func(cluster string) func(*rightsWorld, userRights) map[string]string {
		return func(_ *rightsWorld, r userRights) map[string]string { return r[cluster]["configmaps"].objects }
	}
	ns := w.clusters["eu"].namespaces[1]
	ofNamespace := func(_ *rightsWorld, r userRights) map[string]string {
		out, see := map[string]string{}, r["eu"]["configmaps"]
		for name, label := range see.objects {
			if see.whole[ns] && strings.HasPrefix(name, ns+"/") {
				out[name] = label
			}
		}
		return out
	}
	even := func(w *rightsWorld, r userRights) map[string]string {
		out := all(w, r)
		maps.DeleteFunc(out, func(_, label string) bool { return !isEven(label) })
		return out
	}
	return []watchKind{
		{"/fleet/api/v1/configmaps?", "", true, all},
		{"/fleet/api/v1/configmaps?", "", false, all},
		{"/clusters/eu/api/v1/configmaps?filtered=true&", "", true, ofOne("eu")},
		{"/clusters/us/api/v1/configmaps?filtered=true&", "", false, ofOne("us")},
		{"/fleet/api/v1/configmaps?", asTable, true, all},
		{"/fleet/api/v1/configmaps?", asMetadata, false, all},
		{"/clusters/eu/api/v1/namespaces/" + ns + "/configmaps?", "", false, ofNamespace},
		{"/fleet/api/v1/namespaces?", "", false,
			func(w *rightsWorld, r userRights) map[string]string { return w.fleetState(r, "namespaces") }},
		{"/fleet/api/v1/configmaps?labelSelector=" + selected + "%3Dtrue&", "", true, even},
	}
}

// fleetState returns what a user sees at /fleet.
func (w *rightsWorld) fleetState(r userRights, resource string) map[string]string {
	out := map[string]string{}
	for name := range w.clusters {
		for object, label := range r[name][resource].objects {
			out[inFleet(name, object)] = label
		}
	}
	return out
}

func isEven(label string) bool { n, err := strconv.Atoi(label); return err == nil && n%2 == 0 }

// watchClient keeps a copy of what a user may see, as a reflector does.
type watchClient struct {
	w    *rightsWorld
	user *user.DefaultInfo
	kind watchKind

	mu    sync.Mutex
	state map[string]string
	ended map[string]int // how many watches have ended, by reason
}

// run lists and watches until ctx ends. If it is refused, it tries again after a while.
func (c *watchClient) run(ctx context.Context) {
	retry := time.NewTicker(200 * time.Millisecond)
	defer retry.Stop()
	for ctx.Err() == nil {
		why := c.follow(ctx)
		c.mu.Lock()
		c.ended[why]++
		c.mu.Unlock()
		if why == "410" {
			continue
		}
		select {
		case <-ctx.Done():
		case <-retry.C:
		}
	}
}

// follow lists and watches once. It returns why the watch has ended.
func (c *watchClient) follow(ctx context.Context) string {
	path, state := c.kind.path+"watch=true&allowWatchBookmarks=true", map[string]string{}
	if c.kind.initial {
		path += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	} else {
		version, why := c.list(ctx, state)
		if why != "" {
			return why
		}
		path += "&resourceVersion=" + version
		c.set(state)
	}
	resp, err := openAs(ctx, c.w.client, c.w.url+path, c.kind.accept, c.user)
	if err != nil {
		return "connection"
	}
	defer resp.Body.Close()
	said := c.w.said[c.user.Name]
	said.add(said.phase(), path, headerText(resp.Header))
	lines := bufio.NewReader(resp.Body)
	for initial := c.kind.initial; ; {
		line, err := lines.ReadString('\n')
		said.add(said.phase(), path, line)
		if resp.StatusCode == http.StatusForbidden {
			c.set(map[string]string{})
		}
		if err != nil || resp.StatusCode != http.StatusOK {
			return strconv.Itoa(resp.StatusCode)
		}
		var e watchedEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			c.w.t.Errorf("a line of a watch of %s as %s: %v: %s", c.kind.path, c.user.Name, err, line)
			return "line"
		}
		switch {
		case e.Type == "ERROR":
			return strconv.Itoa(e.Object.Code)
		case e.Type == "BOOKMARK":
			if initial && strings.Contains(line, metav1.InitialEventsAnnotationKey) {
				initial = false
				c.set(state)
			}
		case initial:
			e.apply(state)
		default:
			c.mu.Lock()
			e.apply(c.state)
			c.mu.Unlock()
		}
	}
}

// watchedEvent is a line of a watch, of objects or of Tables.
type watchedEvent struct {
	Type   string
	Object struct {
		metav1.PartialObjectMetadata
		Code int
		Rows []struct{ Object metav1.PartialObjectMetadata }
	}
}

func (e *watchedEvent) apply(state map[string]string) {
	objects := []metav1.PartialObjectMetadata{e.Object.PartialObjectMetadata}
	if e.Object.Kind == "Table" {
		objects = nil
		for _, row := range e.Object.Rows {
			objects = append(objects, row.Object)
		}
	}
	for _, o := range objects {
		if key := o.Namespace + "/" + o.Name; e.Type == "DELETED" {
			delete(state, key)
		} else {
			state[key] = o.Labels[changing]
		}
	}
}

// list lists pages of three objects.
func (c *watchClient) list(ctx context.Context, state map[string]string) (version, why string) {
	said := c.w.said[c.user.Name]
	for next := ""; ; {
		path, phase := c.kind.path+"limit=3&continue="+next, said.phase()
		a, err := askAs(ctx, c.w.client, c.w.url+path, strings.ReplaceAll(c.kind.accept, "Metadata;", "MetadataList;"),
			c.user)
		if err != nil {
			return "", "connection"
		}
		said.add(phase, path, headerText(a.header)+a.body+decoded(a.next))
		if a.code == http.StatusForbidden {
			c.set(map[string]string{})
		}
		if a.code != http.StatusOK {
			return "", strconv.Itoa(a.code)
		}
		maps.Copy(state, a.labels)
		if next, version = a.next, a.version; next == "" {
			return version, ""
		}
	}
}

func (c *watchClient) set(state map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = state
}

// differs describes how the state is not what it should be; "" means that it is.
func (c *watchClient) differs(want map[string]string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := maps.Clone(c.state)
	maps.DeleteFunc(got, func(name, _ string) bool { return !strings.Contains(name, c.w.clusters["eu"].prefix) })
	if maps.Equal(got, want) {
		return ""
	}
	return fmt.Sprintf("a watch of %s as %s has %v, want %v; watches ended with %v", c.kind.path, c.user.Name, got, want,
		c.ended)
}

// begin begins a phase, in which users have these rights. nil means that they change.
func (w *rightsWorld) begin(rights map[string]userRights) {
	w.phases = append(w.phases, rights)
	for _, said := range w.said {
		said.begin(len(w.phases) - 1)
	}
}

// watchThroughChanges keeps watches of all users open while objects, roles and bindings change. before is what users
// may see at the beginning.
func (w *rightsWorld) watchThroughChanges(before map[string]userRights) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	kinds := w.watchKinds()
	changes, rounds, each := 20, 1, 3
	if os.Getenv("MIRADOR_NIGHTLY") != "" {
		changes, rounds, each = 100, 10, len(kinds)
	}
	var clients []*watchClient
	for i, u := range w.users {
		for k := range each {
			c := &watchClient{w: w, user: u, kind: kinds[(i*each+k)%len(kinds)], ended: map[string]int{}}
			clients = append(clients, c)
			running.Go(func() { c.run(ctx) })
		}
	}
	w.settle(clients, before)
	for range rounds {
		w.begin(before)
		w.inClusters(func(c *rightsCluster) { c.changeObjects(changes) })
		before = w.expected(before)
		w.settle(clients, before)
		w.begin(nil)
		w.inClusters(func(c *rightsCluster) {
			for range changes {
				c.changeRights()
				c.changeObjects(1)
			}
		})
		after := w.eachUser(w.rightsOf)
		w.settle(clients, after)
		w.begin(after) // what was withdrawn has no effect any more
		w.inClusters(func(c *rightsCluster) { c.changeObjects(changes) })
		before = w.expected(after)
		w.settle(clients, before)
	}
	ended := map[string]int{}
	for _, c := range clients {
		c.mu.Lock()
		for why, n := range c.ended {
			ended[why] += n
		}
		c.mu.Unlock()
	}
	if ended["410"] == 0 {
		w.t.Errorf("no watch has ended with 410: %v", ended)
	}
	w.t.Logf("%d watches, which ended with %v", len(clients), ended)
}

// settle waits until the states of all clients are what their users may see.
func (w *rightsWorld) settle(clients []*watchClient, rights map[string]userRights) {
	w.t.Helper()
	for _, c := range clients {
		want := c.kind.want(w, rights[c.user.Name])
		until(w.t, func() string { return c.differs(want) })
	}
}

// inClusters calls a function for both clusters at once.
func (w *rightsWorld) inClusters(do func(c *rightsCluster)) {
	var wg sync.WaitGroup
	for _, c := range w.clusters {
		wg.Go(func() { do(c) })
	}
	wg.Wait()
}

// expected returns what users see after objects have changed and rights have not.
func (w *rightsWorld) expected(rights map[string]userRights) map[string]userRights {
	out := map[string]userRights{}
	for name, of := range rights {
		out[name] = userRights{}
		for cluster, resources := range of {
			now := *resources["configmaps"]
			now.objects = map[string]string{}
			for key, label := range w.clusters[cluster].live {
				if namespace, object, _ := strings.Cut(key, "/"); now.can(namespace, object) {
					now.objects[key] = label
				}
			}
			out[name][cluster] = map[string]*seen{"configmaps": &now, "namespaces": resources["namespaces"]}
		}
	}
	return out
}

// changeObjects creates, updates and deletes ConfigMaps. Those that roles name are never deleted.
func (c *rightsCluster) changeObjects(n int) {
	ctx := c.t.Context()
	for range n {
		i := c.rnd.IntN(len(c.namespaces))
		ns := c.namespaces[i]
		maps := c.admin.CoreV1().ConfigMaps(ns)
		var all, others []string
		for key := range c.live {
			if namespace, name, _ := strings.Cut(key, "/"); namespace == ns {
				all = append(all, name)
				if !slices.Contains(c.objects[ns], name) {
					others = append(others, name)
				}
			}
		}
		slices.Sort(all) // so that a seed always makes the same changes
		slices.Sort(others)
		c.made++
		label := strconv.Itoa(c.made)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{changing: label, selected: strconv.FormatBool(isEven(label))}}}
		var err error
		switch what := c.rnd.IntN(4); {
		case what == 0:
			object.Name = fmt.Sprintf("%s-%s-%d-%d", c.prefix, c.name, i, c.made)
			_, err = maps.Create(ctx, object, metav1.CreateOptions{})
		case what == 1 && len(others) > 0:
			object.Name = others[c.rnd.IntN(len(others))]
			err = maps.Delete(ctx, object.Name, metav1.DeleteOptions{})
			delete(c.live, ns+"/"+object.Name)
			check(c.t, err)
			continue
		default:
			object.Name = all[c.rnd.IntN(len(all))]
			_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
		}
		check(c.t, err)
		c.live[ns+"/"+object.Name] = label
	}
}

// changeRights removes or adds a binding, changes the rules of a role, or removes a role or makes it again.
func (c *rightsCluster) changeRights() {
	ctx, t, role := c.t.Context(), c.t, c.rnd.IntN(len(c.roles)-1)
	roles := c.admin.RbacV1().ClusterRoles()
	switch what := c.rnd.IntN(8); {
	case what < 3 && len(c.bindings) > 0:
		i := c.rnd.IntN(len(c.bindings))
		b := c.bindings[i]
		c.bindings = slices.Delete(c.bindings, i, i+1)
		if b.namespace == "" {
			check(t, c.admin.RbacV1().ClusterRoleBindings().Delete(ctx, b.name, metav1.DeleteOptions{}))
		} else {
			check(t, c.admin.RbacV1().RoleBindings(b.namespace).Delete(ctx, b.name, metav1.DeleteOptions{}))
		}
	case what < 6:
		c.bind(c.users[c.rnd.IntN(len(c.users))])
	default:
		next := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: c.roles[role]}, Rules: c.rules()[c.rnd.IntN(8)]}
		_, err := roles.Update(ctx, next, metav1.UpdateOptions{})
		switch {
		case apierrors.IsNotFound(err):
			_, err = roles.Create(ctx, next, metav1.CreateOptions{})
		case err == nil && what == 7:
			err = roles.Delete(ctx, next.Name, metav1.DeleteOptions{})
		}
		check(t, err)
	}
}

// nothingHidden fails if something that the daemon has sent to a user names an object or a namespace that the user
// could not see at that time, and that the request does not name. No metric names any.
func (w *rightsWorld) nothingHidden() {
	eu := w.clusters["eu"]
	object := regexp.MustCompile(`^` + eu.prefix + `-(eu|us)-(\d)-\d+`)
	namespace := regexp.MustCompile(`^` + eu.prefix + `-ns\d`)
	checked, leaks := 0, 0
	leak := func(u *user.DefaultInfo, s sent, what string) {
		if leaks++; leaks <= 10 {
			w.t.Errorf("in phase %d, %s was sent %s, which it may not see, by %s: %.1000s", s.phase, u.Name, what, s.path,
				s.text)
		}
	}
	for _, u := range w.users {
		for _, s := range w.said[u.Name].sent {
			text := strings.ReplaceAll(s.text, u.Name, "")
			for at := range indexesOf(text, eu.prefix) {
				if m := object.FindStringSubmatch(text[at:]); m != nil {
					i, err := strconv.Atoi(m[2])
					check(w.t, err)
					checked++
					if !strings.Contains(s.path, m[0]) && !w.could(u, s.phase, m[1], func(see map[string]*seen) bool {
						return see["configmaps"].can(eu.namespaces[i], m[0])
					}) {
						leak(u, s, m[0])
					}
				}
				if name := namespace.FindString(text[at:]); name != "" {
					cluster := "" // that the fleet's name of the namespace begins with
					for known := range w.clusters {
						if strings.HasSuffix(text[:at], known+".") {
							cluster = known
						}
					}
					checked++
					if !strings.Contains(s.path, name) && !w.could(u, s.phase, cluster, func(see map[string]*seen) bool {
						return see["namespaces"].can("", name) || see["configmaps"].canIn(name)
					}) {
						leak(u, s, "the namespace "+name+" of "+cluster)
					}
				}
			}
		}
	}
	if checked < 1000 {
		w.t.Errorf("only %d names were found in what was sent", checked)
	}
	root := &user.DefaultInfo{Name: "root", Groups: []string{access.Administrators}}
	resp, err := openAs(w.t.Context(), w.client, w.url+"/metrics", "", root)
	check(w.t, err)
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), eu.prefix) {
			w.t.Errorf("a metric names something: %s", lines.Text())
		}
	}
}

// indexesOf yields where a text is in another. Under the race detector, a regular expression takes long to find that.
func indexesOf(text, part string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := 0; ; at++ {
			next := strings.Index(text[at:], part)
			if next < 0 || !yield(at+next) {
				return
			}
			at += next
		}
	}
}

// canIn reports whether the user may see an object of a namespace.
func (s *seen) canIn(namespace string) bool {
	for key := range s.names {
		if strings.HasPrefix(key, namespace+"/") {
			return true
		}
	}
	return s.whole[namespace]
}

// could reports whether the rights of a user allowed something in a phase, in one cluster or, if it is "", in any.
func (w *rightsWorld) could(u *user.DefaultInfo, phase int, cluster string, allows func(map[string]*seen) bool) bool {
	if w.phases[phase] == nil {
		return true // a binding may have been there for a moment
	}
	for name, see := range w.phases[phase][u.Name] {
		if (cluster == "" || cluster == name) && allows(see) {
			return true
		}
	}
	return false
}
