package fleet

// NamespaceIndex is the index of every resource by the namespaces of its objects.
// Cluster-scoped objects are not in it.
const NamespaceIndex = "namespace"

func noNamespace(*Object) ([]string, error) { return nil, nil }
