package fakeapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// resource is one pipeline of the overview.
type resource struct {
	group, version, name, kind string
	namespaced                 bool
	state, err                 string
	objects, queue             int
	perSecond                  float64
}

type cluster struct {
	name, state, err, origin string
	since                    time.Time
	resources                []*resource
	pods                     []base
	lag                      float64
}

// catalog is 60 resources, built-in and custom, as in a typical cluster.
var catalog = strings.Fields(`
	v1/pods/Pod v1/services/Service v1/configmaps/ConfigMap v1/endpoints/Endpoints v1/events/Event
	v1/serviceaccounts/ServiceAccount v1/persistentvolumeclaims/PersistentVolumeClaim
	v1/replicationcontrollers/ReplicationController v1/resourcequotas/ResourceQuota v1/limitranges/LimitRange
	v1/podtemplates/PodTemplate v1/nodes/Node! v1/namespaces/Namespace! v1/persistentvolumes/PersistentVolume!
	apps/v1/deployments/Deployment apps/v1/replicasets/ReplicaSet apps/v1/statefulsets/StatefulSet
	apps/v1/daemonsets/DaemonSet apps/v1/controllerrevisions/ControllerRevision batch/v1/jobs/Job
	batch/v1/cronjobs/CronJob autoscaling/v2/horizontalpodautoscalers/HorizontalPodAutoscaler
	policy/v1/poddisruptionbudgets/PodDisruptionBudget networking.k8s.io/v1/ingresses/Ingress
	networking.k8s.io/v1/networkpolicies/NetworkPolicy networking.k8s.io/v1/ingressclasses/IngressClass!
	discovery.k8s.io/v1/endpointslices/EndpointSlice coordination.k8s.io/v1/leases/Lease
	rbac.authorization.k8s.io/v1/roles/Role rbac.authorization.k8s.io/v1/rolebindings/RoleBinding
	rbac.authorization.k8s.io/v1/clusterroles/ClusterRole!
	rbac.authorization.k8s.io/v1/clusterrolebindings/ClusterRoleBinding!
	storage.k8s.io/v1/storageclasses/StorageClass! storage.k8s.io/v1/csidrivers/CSIDriver!
	storage.k8s.io/v1/csinodes/CSINode! storage.k8s.io/v1/volumeattachments/VolumeAttachment!
	storage.k8s.io/v1/csistoragecapacities/CSIStorageCapacity scheduling.k8s.io/v1/priorityclasses/PriorityClass!
	node.k8s.io/v1/runtimeclasses/RuntimeClass!
	certificates.k8s.io/v1/certificatesigningrequests/CertificateSigningRequest!
	apiextensions.k8s.io/v1/customresourcedefinitions/CustomResourceDefinition!
	apiregistration.k8s.io/v1/apiservices/APIService!
	admissionregistration.k8s.io/v1/validatingwebhookconfigurations/ValidatingWebhookConfiguration!
	admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/MutatingWebhookConfiguration!
	admissionregistration.k8s.io/v1/validatingadmissionpolicies/ValidatingAdmissionPolicy!
	flowcontrol.apiserver.k8s.io/v1/flowschemas/FlowSchema!
	flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/PriorityLevelConfiguration!
	cert-manager.io/v1/certificates/Certificate cert-manager.io/v1/issuers/Issuer
	monitoring.example.com/v1/servicemonitors/ServiceMonitor
	monitoring.example.com/v1/prometheusrules/PrometheusRule gateway.networking.k8s.io/v1/gateways/Gateway
	gateway.networking.k8s.io/v1/httproutes/HTTPRoute example.com/v1/widgets/Widget example.com/v1/gadgets/Gadget
	example.com/v1beta1/gizmos/Gizmo snapshot.example.com/v1/volumesnapshots/VolumeSnapshot
	argo.example.com/v1alpha1/applications/Application argo.example.com/v1alpha1/rollouts/Rollout
	keda.example.com/v1/scaledobjects/ScaledObject`)

var busy = map[string]float64{"pods": 37, "events": 12, "endpointslices": 8, "leases": 6.5, "nodes": 1.2,
	"deployments": 0.8, "replicasets": 1.5, "jobs": 3}

func newCluster(name string, pods int, now time.Time) *cluster {
	c := &cluster{name: name, state: "ready", origin: "kubeconfig",
		since: now.Add(-3*time.Hour - 12*time.Minute), lag: 0.4}
	for i, entry := range catalog {
		parts := strings.Split(entry, "/")
		if len(parts) == 3 {
			parts = slices.Insert(parts, 0, "")
		}
		kind, global := strings.CutSuffix(parts[3], "!")
		r := &resource{group: parts[0], version: parts[1], name: parts[2], kind: kind, namespaced: !global,
			state: "streaming", objects: (i * i * 7) % 450, perSecond: busy[parts[2]]}
		switch r.name {
		case "pods":
			r.objects = pods
		case "namespaces":
			r.objects = 20
		}
		c.resources = append(c.resources, r)
	}
	c.pods = makePods(pods)
	return c
}

// trouble gives a cluster the problems that the overview must show.
func (c *cluster) trouble() {
	c.state, c.lag, c.origin = "degraded", 14.2, "folder"
	for _, r := range c.resources {
		switch r.name {
		case "widgets":
			r.state, r.err = "retrying", `watch widgets.example.com: the server refused: <b>forbidden</b> to mirador`
		case "jobs":
			r.queue = 420
		case "gizmos":
			r.state = "not served"
			r.objects = 0
		case "applications":
			r.state, r.objects = "listing", 120
		}
	}
}

func (s *Server) document() object {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	clusters := []object{}
	for _, name := range slices.Sorted(maps.Keys(s.clusters)) {
		c := s.clusters[name]
		resources := []object{}
		for i, r := range c.resources {
			resources = append(resources, object{
				"group": r.group, "version": r.version, "resource": r.name, "kind": r.kind, "namespaced": r.namespaced,
				"state": r.state, "synced": r.state != "listing", "objects": r.objects,
				"events": int(r.perSecond*now.Sub(s.began).Seconds()) + 1000,
				"queue":  r.queue, "handlers": 1 + i%4, "lastHeardSeconds": 0.1 + float64(i%9)/10, "bytes": r.objects * 612,
				"epoch": 1, "error": r.err,
			})
		}
		clusters = append(clusters, object{"name": name, "state": c.state,
			"since": c.since.Format(time.RFC3339), "error": c.err,
			"version": "v1.36.3", "origin": c.origin, "lastHeardSeconds": c.lag, "resources": resources})
	}
	doc := object{"now": now.Format(time.RFC3339Nano), "memory": object{"heapBytes": 61 << 20, "rssBytes": 118 << 20},
		"clusters": clusters}
	if !s.begin.IsZero() {
		doc["disk"] = object{"bytes": 700 << 20, "maxBytes": 10 << 30}
	}
	return doc
}

func (s *Server) getClusters(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "true" {
		reply(w, http.StatusOK, s.document())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	defer s.stream()()
	_, cut := s.streams()
	tick := time.NewTicker(s.tick)
	defer tick.Stop()
	for {
		line := s.document()
		line["whole"] = true // the real daemon sends changes; the page treats both alike
		if json.NewEncoder(w).Encode(line) != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-tick.C:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (s *Server) postCluster(w http.ResponseWriter, r *http.Request) {
	var ask struct{ Name, Kubeconfig, Context string }
	if r.Header.Get("Content-Type") != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "UnsupportedMediaType", "send JSON")
		return
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&ask); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", "reading the request: "+err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.clusters[ask.Name] != nil:
		refuse(w, http.StatusConflict, "AlreadyExists", `a cluster called "`+ask.Name+
			`" is there already; choose another name`)
	case strings.Contains(ask.Kubeconfig, "exec:"):
		refuse(w, http.StatusBadRequest, "BadRequest", "joining "+ask.Name+
			": users[0].user.exec: a plugin would run on the daemon's machine; put a token or a certificate into the kubeconfig")
	default:
		c := newCluster(ask.Name, 100, time.Now())
		c.state, c.origin = "syncing", "joined"
		s.clusters[ask.Name] = c
		reply(w, http.StatusCreated, object{"name": ask.Name})
	}
}

func (s *Server) deleteCluster(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.PathValue("name")
	if s.clusters[name] == nil {
		refuse(w, http.StatusNotFound, "NotFound", `there is no cluster called "`+name+`"`)
		return
	}
	delete(s.clusters, name)
	reply(w, http.StatusOK, object{"kind": "Status", "status": "Success"})
}

// SetState sets a cluster's state.
func (s *Server) SetState(name, state, err string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clusters[name].state, s.clusters[name].err = state, err
}

// Clusters returns the names of the clusters.
func (s *Server) Clusters() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.clusters))
}
