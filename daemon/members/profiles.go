package members

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source/kube"
)

var profilesGVR = schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1",
	Resource: "clusterprofiles"}

func openProfiles(cfg *rest.Config, o *kube.Options) (*kube.Source[*unstructured.Unstructured], error) {
	return kube.Dynamic(cfg, profilesGVR, o)
}

// clusterProfile has the fields of a ClusterProfile that are used. The types of its module would bring
// controller-runtime along.
type clusterProfile struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   struct {
		CredentialProviders []accessProvider `json:"credentialProviders"` // the earlier name of accessProviders
		AccessProviders     []accessProvider `json:"accessProviders"`
	} `json:"status"`
}

// accessProvider is a way to reach a cluster.
type accessProvider struct {
	Name    string          `json:"name"`
	Cluster json.RawMessage `json:"cluster"` // as in a kubeconfig
}

// profileList has the members of ClusterProfile objects.
type profileList struct {
	profiles  *informer.Informer[*unstructured.Unstructured]
	secrets   *informer.Informer[*corev1.Secret]
	namespace string
	providers []Provider
	parsed    map[string]parsedProfile // by key; used by one goroutine only
}

// parsedProfile is how a version of a profile is reached.
type parsedProfile struct {
	version string
	cluster string // the name
	via     access
	err     error
}

// Versions implements fleet.MemberList. A version has that of the Secret with the credentials.
func (l *profileList) Versions() (map[string]string, error) {
	versions := map[string]string{}
	for key, u := range l.profiles.Snapshot().All() {
		p := l.parsed[string(key)]
		if p.version != u.GetResourceVersion() {
			p = l.parse(u)
			l.parsed[string(key)] = p
		}
		version := p.version
		if p.via.secret != nil {
			if s, ok := l.secrets.Get(object.NewKey(l.namespace, p.via.secret.Name)); ok {
				version += " " + s.ResourceVersion
			}
		}
		versions[string(key)] = version
	}
	for key := range l.parsed {
		if _, exists := versions[key]; !exists {
			delete(l.parsed, key)
		}
	}
	return versions, nil
}

// Read implements fleet.MemberList.
func (l *profileList) Read(name string) (m fleet.Member, err error) {
	p, ok := l.parsed[name]
	if !ok {
		return m, errDeleted
	}
	if p.err != nil {
		return m, p.err
	}
	m.Cluster, m.Exec = p.cluster, p.via.exec
	user := map[string]any{}
	if ref := p.via.secret; ref != nil {
		s, ok := l.secrets.Get(object.NewKey(l.namespace, ref.Name))
		if !ok {
			return m, fmt.Errorf("its credentials are missing: there is no Secret %s in the namespace %s", ref.Name, l.namespace)
		}
		if user, err = ref.userIn(s); err != nil {
			return m, err
		}
	}
	m.Kubeconfig, err = json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "profile",
		"clusters": []any{map[string]any{"name": "profile", "cluster": p.via.cluster}},
		"users":    []any{map[string]any{"name": "profile", "user": user}},
		"contexts": []any{map[string]any{"name": "profile", "context": map[string]string{"cluster": "profile",
			"user": "profile"}}},
	})
	return m, err
}

func (l *profileList) parse(u *unstructured.Unstructured) parsedProfile {
	out := parsedProfile{version: u.GetResourceVersion(), cluster: u.GetName()}
	if given := u.GetAnnotations()[nameAnnotation]; given != "" {
		out.cluster = given
	}
	var profile clusterProfile
	b, err := u.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(b, &profile)
	}
	if err != nil {
		out.err = errors.New("it is not a ClusterProfile as multicluster.x-k8s.io/v1alpha1 defines it")
		return out
	}
	out.via, out.err = l.choose(&profile)
	return out
}

// choose returns how a profile's cluster is reached: by the first provider that the profile has, those of the operator
// first.
func (l *profileList) choose(profile *clusterProfile) (access, error) {
	offered := map[string]accessProvider{}
	for _, a := range slices.Concat(profile.Status.CredentialProviders, profile.Status.AccessProviders) {
		offered[a.Name] = a
	}
	for i := range l.providers {
		if a, ok := offered[l.providers[i].Name]; ok {
			return l.providers[i].access(&a)
		}
	}
	for _, builtIn := range []struct {
		name   string
		access func(*accessProvider, string) (access, error)
	}{{"kubeconfig-secretreader", kubeconfigSecret}, {"secretreader", tokenSecret}} {
		if a, ok := offered[builtIn.name]; ok {
			return builtIn.access(&a, l.namespace)
		}
	}
	names := make([]string, 0, len(offered))
	for name := range offered {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return access{}, errors.New("it has no access providers in its status yet")
	}
	return access{}, fmt.Errorf("its access providers (%s) are not known; describe one in the file of "+
		"--clusterprofile-provider-file", strings.Join(names, ", "))
}
