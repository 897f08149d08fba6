package members

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
)

const (
	// nameAnnotation on an object names its cluster; without it, the cluster has the name of the object.
	nameAnnotation = "mirador.dev/name"
	// kubeconfigKey is where a Secret has the kubeconfig, or capiKey if it was written by Cluster API, which appends
	// capiSuffix to the name of the cluster.
	kubeconfigKey = "kubeconfig"
	capiKey       = "value"
	capiSuffix    = "-kubeconfig"
)

var errDeleted = errors.New("it has been deleted meanwhile")

// secretList has the members of Secrets with kubeconfigs.
type secretList struct {
	secrets  *informer.Informer[*corev1.Secret]
	selector labels.Selector
}

// Versions implements fleet.MemberList.
func (l *secretList) Versions() (map[string]string, error) {
	versions := map[string]string{}
	for key, s := range l.secrets.Snapshot().All() {
		if l.selector.Matches(labels.Set(s.Labels)) {
			versions[string(key)] = s.ResourceVersion
		}
	}
	return versions, nil
}

// Read implements fleet.MemberList.
func (l *secretList) Read(name string) (m fleet.Member, err error) {
	s, ok := l.secrets.Get(object.Key(name))
	if !ok {
		return m, errDeleted
	}
	m.Cluster = s.Name
	if m.Kubeconfig, ok = s.Data[kubeconfigKey]; !ok {
		if m.Kubeconfig, ok = s.Data[capiKey]; !ok {
			return m, fmt.Errorf("the Secret has neither the key %q nor %q; put the kubeconfig into one of them",
				kubeconfigKey, capiKey)
		}
		m.Cluster = strings.TrimSuffix(s.Name, capiSuffix)
	}
	if given := s.Annotations[nameAnnotation]; given != "" {
		m.Cluster = given
	}
	return m, nil
}
