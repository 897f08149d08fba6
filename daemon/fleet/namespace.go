package fleet

import (
	"errors"

	"github.com/mirador-k8s/mirador/internal/jsonscan"
)

// NamespaceIndex is the index of every resource by the namespaces of its objects.
// Cluster-scoped objects are not in it.
const NamespaceIndex = "namespace"

func noNamespace(*Object) ([]string, error) { return nil, nil }

// byNamespace returns the namespace in an object's JSON.
func byNamespace(obj *Object) ([]string, error) {
	from, to, ok := jsonscan.Member(obj.Bytes, "metadata")
	if !ok {
		return nil, errNoMetadata
	}
	if namespace := jsonscan.Text(obj.Bytes[from:to], "namespace"); namespace != "" {
		return []string{namespace}, nil
	}
	return nil, nil
}

var errNoMetadata = errors.New("the object has no metadata")
