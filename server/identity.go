package server

import (
	"slices"
	"strings"

	"github.com/mirador-k8s/mirador/object"
)

// In the view of all clusters an object must be another than its namesake in the next cluster, for
// any client. So its namespace is that of its cluster, "eu.web", and where it has none its name is,
// "eu:node-1". Neither a cluster's name nor a namespace has a dot or a colon in it.
const (
	clusterAnnotation = "mirador.dev/cluster"
	versionAnnotation = "mirador.dev/resource-version"
)

// inFleet gives the namespace and name under which all clusters' view shows an object.
func inFleet(cluster string, key object.Key) (namespace, name string) {
	namespace, name = key.Split()
	if namespace == "" {
		return "", cluster + ":" + name
	}
	return cluster + "." + namespace, name
}

// ofFleetNamespace is the way back. ok is false for a name that no cluster's namespace has.
func ofFleetNamespace(shown string) (cluster, namespace string, ok bool) {
	cluster, namespace, ok = strings.Cut(shown, ".")
	return cluster, namespace, ok && cluster != "" && namespace != ""
}

// ofFleetName is the way back for an object without a namespace.
func ofFleetName(shown string) (cluster, name string, ok bool) {
	cluster, name, ok = strings.Cut(shown, ":")
	return cluster, name, ok && cluster != "" && name != ""
}

// edit replaces a part of some bytes.
type edit struct {
	from, to int
	with     string
}

// appendForFleet appends an object as the view of all clusters shows it.
func appendForFleet(dst, obj []byte, cluster string, key object.Key, version string) []byte {
	from, to, ok := member(obj, "metadata")
	if !ok || obj[from] != '{' {
		return append(dst, obj...)
	}
	meta := obj[from:to]
	namespace, name := inFleet(cluster, key)
	marks := `"` + clusterAnnotation + `":"` + cluster + `","` + versionAnnotation + `":"` + text(meta, "resourceVersion") + `"`
	edits := make([]edit, 0, 4)
	replace := func(field, with string) {
		if a, b, ok := member(meta, field); ok {
			edits = append(edits, edit{a, b, `"` + with + `"`})
		}
	}
	replace("name", name)
	if namespace != "" {
		replace("namespace", namespace)
	}
	replace("resourceVersion", version)
	switch a, b, ok := member(meta, "annotations"); {
	case ok && meta[a] == '{':
		if skipSpace(meta, a+1) < b-1 {
			marks += ","
		}
		edits = append(edits, edit{a + 1, a + 1, marks})
	case ok:
		edits = append(edits, edit{a, b, "{" + marks + "}"})
	default:
		edits = append(edits, edit{1, 1, `"annotations":{` + marks + `},`})
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	dst = append(dst, obj[:from]...)
	at := 0
	for _, e := range edits {
		dst = append(append(dst, meta[at:e.from]...), e.with...)
		at = e.to
	}
	return append(append(dst, meta[at:]...), obj[to:]...)
}
