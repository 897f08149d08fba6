package simulate

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// builtIn are resources that every cluster has, by group and version. Further ones are custom resources.
var builtIn = map[string][]string{
	"v1": {"Pod", "Service", "ConfigMap", "Namespace", "Node", "ServiceAccount", "PersistentVolume",
		"PersistentVolumeClaim", "ResourceQuota", "LimitRange", "ReplicationController", "PodTemplate"},
	"apps/v1":                         {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision"},
	"batch/v1":                        {"Job", "CronJob"},
	"networking.k8s.io/v1":            {"Ingress", "NetworkPolicy", "IngressClass"},
	"rbac.authorization.k8s.io/v1":    {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"},
	"storage.k8s.io/v1":               {"StorageClass", "CSIDriver", "CSINode", "VolumeAttachment"},
	"policy/v1":                       {"PodDisruptionBudget"},
	"autoscaling/v2":                  {"HorizontalPodAutoscaler"},
	"discovery.k8s.io/v1":             {"EndpointSlice"},
	"apiextensions.k8s.io/v1":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io/v1":       {"APIService"},
	"admissionregistration.k8s.io/v1": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"},
}

// customGroups is the number of groups with custom resources.
const customGroups = 5

// clusterScoped are resources without a namespace.
var clusterScoped = []string{"Namespace", "Node", "PersistentVolume", "IngressClass", "ClusterRole",
	"ClusterRoleBinding", "StorageClass", "CSIDriver", "CSINode", "VolumeAttachment", "CustomResourceDefinition",
	"APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}

// kind is a resource's kind.
type kind struct{ name, apiVersion string }

// answers are what all clusters answer alike.
type answers struct {
	kinds map[string]*kind // by the path of the resource
	docs  map[string]doc   // by path
}

type doc struct{ contentType, etag, body string }

// newAnswers makes the answers of clusters with n resources.
func newAnswers(n int) (*answers, error) {
	a := &answers{kinds: map[string]*kind{}, docs: map[string]doc{}}
	served := map[string][]string{}
	left := n
	for _, gv := range slices.Backward(slices.Sorted(maps.Keys(builtIn))) { // pods first
		take := min(left, len(builtIn[gv]))
		served[gv] = builtIn[gv][:take]
		left -= take
	}
	for i := range left {
		gv := fmt.Sprintf("group%d.example.com/v1", i%customGroups)
		served[gv] = append(served[gv], fmt.Sprintf("Widget%d", i))
	}
	return a, a.describe(served)
}

// describe makes the answers to discovery and for OpenAPI documents.
func (a *answers) describe(served map[string][]string) error {
	core, named := groupList(), groupList()
	var index []string
	for gv, kinds := range served {
		parsed, err := schema.ParseGroupVersion(gv)
		if err != nil {
			return fmt.Errorf("describe the simulated clusters: %w", err)
		}
		list, path := named, "apis/"+gv
		if parsed.Group == "" {
			list, path = core, "api/"+gv
		}
		v := apidiscovery.APIVersionDiscovery{Version: parsed.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
		for _, name := range kinds {
			v.Resources = append(v.Resources, resource(parsed, name))
			a.kinds["/"+path+"/"+plural(name)] = &kind{name, gv}
		}
		list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: parsed.Group},
			Versions: []apidiscovery.APIVersionDiscovery{v}})
		a.docs["/openapi/v3/"+path] = doc{"application/json", "", schemaOf(gv, kinds)}
		index = append(index, fmt.Sprintf(`%q:{"serverRelativeURL":"/openapi/v3/%s?hash=1"}`, path, path))
	}
	slices.Sort(index)
	a.docs["/openapi/v3"] = doc{"application/json", "", `{"paths":{` + strings.Join(index, ",") + `}}`}
	for path, list := range map[string]*apidiscovery.APIGroupDiscoveryList{"/api": core, "/apis": named} {
		slices.SortFunc(list.Items, func(x, y apidiscovery.APIGroupDiscovery) int {
			return strings.Compare(x.Name, y.Name)
		})
		body, err := json.Marshal(list)
		if err != nil {
			return fmt.Errorf("describe the simulated clusters: %w", err)
		}
		a.docs[path] = doc{"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", `"1"`, string(body)}
	}
	return nil
}

func groupList() *apidiscovery.APIGroupDiscoveryList {
	return &apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList",
		APIVersion: "apidiscovery.k8s.io/v2"}}
}

func resource(gv schema.GroupVersion, name string) apidiscovery.APIResourceDiscovery {
	r := apidiscovery.APIResourceDiscovery{Resource: plural(name), SingularResource: strings.ToLower(name),
		ResponseKind: &metav1.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: name},
		Scope:        apidiscovery.ScopeNamespace,
		Verbs:        []string{"create", "delete", "get", "list", "patch", "update", "watch"}}
	if slices.Contains(clusterScoped, name) {
		r.Scope = apidiscovery.ScopeCluster
	}
	return r
}

func plural(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case strings.HasSuffix(name, "s"):
		return name + "es"
	case strings.HasSuffix(name, "y"):
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return name + "s"
}

// schemaOf makes a document of some ten kilobytes for each kind, which compresses about as well as real ones do.
func schemaOf(gv string, kinds []string) string {
	random := rand.New(rand.NewPCG(uint64(len(gv)), uint64(len(kinds))))
	var b strings.Builder
	b.WriteString(`{"openapi":"3.0.0","info":{"title":"Kubernetes","version":"v1.36.0"},"components":{"schemas":{`)
	for i, name := range kinds {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%s.%s":{"type":"object","properties":{`, gv, name)
		for field := range 100 {
			if field > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"field%d":{"description":"Field %x of %s is optional.","type":"string"}`, field, random.Uint64(),
				name)
		}
		b.WriteString(`}}`)
	}
	b.WriteString(`}}}`)
	return b.String()
}

// serve answers a request for a document, and reports whether there is one.
func (a *answers) serve(w http.ResponseWriter, r *http.Request) bool {
	d, ok := a.docs[r.URL.Path]
	if !ok {
		return false
	}
	w.Header().Set("Content-Type", d.contentType)
	if d.etag != "" {
		w.Header().Set("ETag", d.etag)
		if r.Header.Get("If-None-Match") == d.etag {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
	}
	io.WriteString(w, d.body) // the client sees it
	return true
}
