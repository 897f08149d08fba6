package feed

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/object"
)

// Cluster is an API server that has only pods and keeps none in memory: they are made while they are read. Clients
// that start with a watch with sendInitialEvents, as ours do, can mirror it.
type Cluster struct {
	set          *testpods.Set
	n, templates int
	namespaces   int               // 0 leaves the namespaces of the templates
	rights       map[string][]byte // the answers to watches of roles and bindings, by path; nil if there are none

	mu      sync.Mutex
	changes int
	watches map[chan []byte]struct{}
	sent    []*Change // in order, so that watches can resume
	states  int       // number of times that all pods were read
}

// NewCluster returns a cluster with n pods of a number of templates; the pods of different seeds differ.
func NewCluster(seed uint64, n, templates int) *Cluster {
	return &Cluster{set: testpods.New(seed, templates), n: n, templates: templates, watches: map[chan []byte]struct{}{}}
}

// Pod returns the i-th pod in its initial state.
func (c *Cluster) Pod(i int) *corev1.Pod {
	pod := c.set.Pod(i)
	if c.namespaces > 0 {
		pod.Namespace = c.Namespace(i % c.namespaces)
	}
	return pod
}

// PodName returns the name of the i-th pod, without making it.
func (c *Cluster) PodName(i int) string {
	_, name, _ := strings.Cut(c.set.Key(i), "/")
	return name
}

// InNamespaces moves the i-th pod into namespace i modulo n. It must be called before the cluster serves.
func (c *Cluster) InNamespaces(n int) { c.namespaces = n }

// Namespace returns the name of a namespace of InNamespaces.
func (c *Cluster) Namespace(i int) string { return fmt.Sprintf("ns-%03d", i) }

// beforeChanges is the version of the initial state: later than all pods, earlier than all changes.
const beforeChanges = "999999999"

// A Change is encoded beforehand, so that sending it is cheap.
type Change struct {
	Namespace, Name, Version string
	frame                    []byte
}

// Prepare makes the next change of a pod. Changes must be sent in the order in which they were made.
func (c *Cluster) Prepare(pod *corev1.Pod) (*Change, *corev1.Pod, error) {
	c.mu.Lock()
	c.changes++
	n := c.changes
	c.mu.Unlock()
	next := c.set.Changed(pod, n)
	frame, err := appendEvent(nil, JSON, watch.Modified, next)
	return &Change{next.Namespace, next.Name, next.ResourceVersion, frame}, next, err
}

// Send sends a change to all open watches.
func (c *Cluster) Send(change *Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, change)
	for w := range c.watches {
		w <- change.frame
	}
}

const podResource = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[` +
	`{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod",` +
	`"verbs":["get","list","watch"],"shortNames":["po"]}]}`

// ServeHTTP answers discovery and watches of all pods.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if c.rights != nil && c.serveRights(w, r) {
		return
	}
	switch r.URL.Path {
	case "/api":
		io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`) // the client sees it
	case "/apis":
		io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
	case "/api/v1":
		io.WriteString(w, podResource)
	case "/version":
		io.WriteString(w, `{"major":"1","minor":"36","gitVersion":"v1.36.0"}`)
	case "/api/v1/namespaces/kube-system":
		fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"uid-%p"}}`, c)
	case "/api/v1/pods":
		c.watch(w, r)
	default:
		status(w, http.StatusNotFound, "NotFound")
	}
}

func status(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure",
		"reason": reason, "code": code})
}

// asksForState reports whether a request is a watch that begins with the state.
func asksForState(r *http.Request) bool {
	q := r.URL.Query()
	return (q.Get("watch") == "true" || q.Get("watch") == "1") && q.Get("sendInitialEvents") == "true"
}

// States returns how many times all pods were read.
func (c *Cluster) States() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.states
}

// open opens a watch. If it resumes at a version, missed has the changes since.
func (c *Cluster) open(version string, state bool) (changes chan []byte, missed []*Change) {
	changes = make(chan []byte, 1024)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches[changes] = struct{}{}
	if state {
		c.states++
		return changes, nil
	}
	for i, s := range c.sent {
		if object.Version(version).Before(object.Version(s.Version)) {
			return changes, c.sent[i:]
		}
	}
	return changes, nil
}

func (c *Cluster) watch(w http.ResponseWriter, r *http.Request) {
	from := r.URL.Query().Get("resourceVersion")
	state := asksForState(r)
	if !state && object.Version(from).Before(beforeChanges) {
		status(w, http.StatusGone, "Expired") // so that the client requests the initial state
		return
	}
	changes, missed := c.open(from, state)
	defer func() {
		c.mu.Lock()
		delete(c.watches, changes)
		c.mu.Unlock()
	}()
	if state {
		all := &stream{form: JSON, pod: c.Pod, order: listed(c.n, c.templates), last: beforeChanges}
		if _, err := io.Copy(w, all); err != nil {
			return
		}
	}
	for _, change := range missed {
		if _, err := w.Write(change.frame); err != nil {
			return
		}
	}
	ctl := http.NewResponseController(w)
	for {
		if ctl.Flush() != nil {
			return
		}
		select {
		case frame := <-changes:
			if _, err := w.Write(frame); err != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// Kubeconfig returns a kubeconfig for a server at a URL.
func Kubeconfig(name, url string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
users: [{name: u, user: {}}]
contexts: [{name: %q, context: {cluster: c, user: u}}]
current-context: %q
`, url, name, name)
}
