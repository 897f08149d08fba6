package server

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// Report is the answer of /clusters: the health of every cluster and resource.
type Report struct {
	Now      time.Time       `json:"now"`
	Memory   Memory          `json:"memory"`
	Disk     *Disk           `json:"disk,omitempty"` // nil without a data folder
	Clusters []ClusterReport `json:"clusters"`
	// Continue is the parameter continue of the request for the next page; empty if there are no more clusters.
	Continue string `json:"continue,omitempty"`
}

// Disk is how the data folder is.
type Disk struct {
	Bytes    int64 `json:"bytes"`
	MaxBytes int64 `json:"maxBytes,omitempty"`
	// Error says why nothing is written, since when.
	Error string    `json:"error,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// HistoryPaused says that no history is written, because there is no room.
	HistoryPaused bool `json:"historyPaused,omitempty"`
}

func (s *Server) disk() *Disk {
	h, ok := s.fleet.DiskHealth()
	if !ok {
		return nil
	}
	out := &Disk{Bytes: h.Bytes, MaxBytes: h.MaxBytes, Since: h.Since, HistoryPaused: h.Paused}
	if h.Err != nil {
		out.Error = h.Err.Error()
	}
	return out
}

// Memory is how much memory the daemon uses.
type Memory struct {
	HeapBytes uint64 `json:"heapBytes"`
	// RSSBytes is the resident set size; 0 where that cannot be read.
	RSSBytes uint64 `json:"rssBytes"`
}

func memory() (m Memory) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	m.HeapBytes = sample[0].Value.Uint64()
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := strings.Fields(string(b)); len(f) > 1 {
			pages, _ := strconv.ParseUint(f[1], 10, 64)
			m.RSSBytes = pages * uint64(os.Getpagesize())
		}
	}
	return m
}

// ClusterReport is the health of one cluster.
type ClusterReport struct {
	Name    string    `json:"name"`
	State   string    `json:"state"`
	Since   time.Time `json:"since"`
	Error   string    `json:"error,omitempty"`
	Version string    `json:"version,omitempty"`
	Origin  string    `json:"origin,omitempty"`
	// Authorization is how requests for the cluster's objects are authorized: rbac, review, rules or none.
	Authorization    string  `json:"authorization,omitempty"`
	LastHeardSeconds float64 `json:"lastHeardSeconds"`
	// Totals are of all resources of the cluster.
	Totals ClusterTotals `json:"totals"`
	// Resources is nil if they were not asked for.
	Resources []ResourceReport `json:"resources,omitzero"`
}

// ClusterTotals adds up the resources of a cluster.
type ClusterTotals struct {
	Mirrored int    `json:"mirrored"`
	Synced   int    `json:"synced"`
	Objects  int    `json:"objects"`
	Queue    int    `json:"queue"`
	Events   uint64 `json:"events"`
	Bytes    int64  `json:"bytes"`
}

func (t *ClusterTotals) add(r *ResourceReport) {
	t.Mirrored++
	if r.Synced {
		t.Synced++
	}
	t.Objects += r.Objects
	t.Queue += r.Queue
	t.Events += r.Events
	t.Bytes += r.Bytes
}

// ResourceReport is the health of one mirrored resource.
type ResourceReport struct {
	Group            string  `json:"group"`
	Version          string  `json:"version"`
	Resource         string  `json:"resource"`
	Kind             string  `json:"kind"`
	Namespaced       bool    `json:"namespaced"`
	State            string  `json:"state"`
	Synced           bool    `json:"synced"`
	Objects          int     `json:"objects"`
	Events           uint64  `json:"events"`
	Queue            int     `json:"queue"`
	Handlers         int     `json:"handlers"`
	LastHeardSeconds float64 `json:"lastHeardSeconds"`
	Bytes            int64   `json:"bytes"`
	Epoch            uint64  `json:"epoch"`
	Error            string  `json:"error,omitempty"`
}

var clusterResource = schema.GroupResource{Group: "mirador.dev", Resource: "clusters"}

// clusters answers /clusters and /clusters/{name}.
func (s *Server) clusters(w http.ResponseWriter, r *http.Request) {
	name := strings.Trim(strings.TrimPrefix(r.URL.Path, "/clusters"), "/")
	verb := clusterVerb(r, name)
	recordOf(r).describe(daemonAttributes(verb, name), scopeDaemon, name)
	err := s.allow(r, access.Daemon, daemonAttributes(verb, name))
	switch {
	case err != nil:
	case r.Method == http.MethodGet && isWatch(r) && name == "":
		err = s.followReport(w, r)
	case (r.Method == http.MethodGet || r.Method == http.MethodHead) && name == "":
		err = s.reportPage(w, r)
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		err = s.oneReport(w, name)
	case r.Method == http.MethodPost && name == "":
		err = s.joinCluster(w, r)
	case r.Method == http.MethodDelete && name != "":
		err = s.leaveCluster(w, r, name)
	default:
		err = apierrors.NewMethodNotSupported(clusterResource, r.Method)
	}
	if err != nil {
		fail(w, r, err, nil)
	}
}

// clusterVerb returns the verb of a request to /clusters or /clusters/{name}.
func clusterVerb(r *http.Request, name string) string {
	switch {
	case r.Method == http.MethodPost:
		return "create"
	case r.Method == http.MethodDelete:
		return "delete"
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return strings.ToLower(r.Method)
	case name != "":
		return "get"
	case isWatch(r):
		return "watch"
	}
	return "list"
}

// clusterReport returns the report about a cluster, with that of each resource if detailed is true.
func (s *Server) clusterReport(c *fleet.Cluster, now time.Time, detailed bool) ClusterReport {
	h := c.Health()
	out := ClusterReport{Name: c.Name(), State: string(h.State), Since: h.Since, Error: h.Err, Version: h.ServerVersion,
		Origin: c.Origin().Kind, Authorization: string(s.opts.Authorizer.Mode(c.Name())),
		LastHeardSeconds: h.LastEventAge.Seconds()}
	if detailed {
		out.Resources = []ResourceReport{}
	}
	for _, res := range c.Resources() {
		r := resourceReport(res, now)
		out.Totals.add(&r)
		if detailed {
			out.Resources = append(out.Resources, r)
		}
	}
	return out
}

func resourceReport(res *fleet.Resource, now time.Time) ResourceReport {
	gvr, h := res.GVR(), res.Health()
	out := ResourceReport{Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource, Kind: res.GVK().Kind,
		Namespaced: res.Info().Namespaced, State: h.Reflector.State.String(), Synced: h.Synced, Objects: h.Objects,
		Events: h.Events, Queue: h.QueueDeltas, Handlers: len(h.Handlers), Bytes: h.Layout.Bytes, Epoch: h.Epoch}
	if h.Reflector.Restored {
		out.State = string(fleet.Restored)
	}
	if !h.Reflector.LastEvent.IsZero() {
		out.LastHeardSeconds = h.Reflector.Age(now).Seconds()
	}
	if err := h.Reflector.Err; err != nil {
		out.Error = err.Error()
	}
	return out
}

func (s *Server) oneReport(w http.ResponseWriter, name string) error {
	c, ok := s.fleet.Cluster(name)
	if !ok {
		return apierrors.NewNotFound(clusterResource, name)
	}
	writeJSON(w, http.StatusOK, s.clusterReport(c, time.Now(), true))
	return nil
}

// maxJoin is how large a kubeconfig may be.
const maxJoin = 1 << 20

func (s *Server) joinCluster(w http.ResponseWriter, r *http.Request) error {
	var ask struct{ Name, Kubeconfig, Context string }
	body := http.MaxBytesReader(connectionWriter(w), r.Body, maxJoin)
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&ask); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return apierrors.NewRequestEntityTooLargeError("a kubeconfig of more than 1 MiB")
		}
		return apierrors.NewBadRequest(`the body must be {"name": …, "kubeconfig": …, "context": …}`)
	}
	if _, err := dec.Token(); err != io.EOF {
		return apierrors.NewBadRequest("the body has something after the JSON object")
	}
	code := http.StatusCreated
	err := s.fleet.JoinKubeconfig(ask.Name, []byte(ask.Kubeconfig), ask.Context)
	if errors.Is(err, fleet.ErrExists) && s.decide(r, access.Daemon, daemonAttributes("update", ask.Name)).Allowed {
		// A cluster that joins again has other credentials.
		code = http.StatusOK
		err = s.fleet.RejoinKubeconfig(r.Context(), ask.Name, []byte(ask.Kubeconfig), ask.Context)
	}
	switch {
	case errors.Is(err, fleet.ErrExists):
		exists := apierrors.NewAlreadyExists(clusterResource, ask.Name)
		exists.ErrStatus.Message += ": " + err.Error()
		return exists
	case err != nil:
		return apierrors.NewBadRequest(err.Error())
	}
	c, ok := s.fleet.Cluster(ask.Name)
	if !ok {
		return apierrors.NewConflict(clusterResource, ask.Name, errors.New("it left the fleet at once"))
	}
	if rec := recordOf(r); rec != nil {
		rec.cluster = ask.Name // the path does not have it
	}
	writeJSON(w, code, s.clusterReport(c, time.Now(), true))
	return nil
}

func (s *Server) leaveCluster(w http.ResponseWriter, r *http.Request, name string) error {
	switch err := s.fleet.Leave(r.Context(), name); {
	case errors.Is(err, fleet.ErrUnknown):
		return apierrors.NewNotFound(clusterResource, name)
	case err != nil:
		return err
	}
	writeJSON(w, http.StatusOK, map[string]string{"left": name})
	return nil
}
