package server

import (
	"bytes"
	"slices"
	"strings"

	"github.com/mirador-k8s/mirador/internal/jsonscan"
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
	from, to, ok := jsonscan.Member(obj, "metadata")
	if !ok || obj[from] != '{' {
		return append(dst, obj...)
	}
	meta := obj[from:to]
	edits := fleetEdits(meta, cluster, key, version)
	dst = append(dst, obj[:from]...)
	at := 0
	for _, e := range edits {
		dst = append(append(dst, meta[at:e.from]...), e.with...)
		at = e.to
	}
	return append(append(dst, meta[at:]...), obj[to:]...)
}

// fleetEdits are what is changed in an object's metadata, in their order. One way through it finds all: with one for
// each field, this took longer than to unpack the object. A field that is there twice, which no API server sends, is changed twice, so
// that whatever counts for a reader says which cluster it is of.
func fleetEdits(meta []byte, cluster string, key object.Key, version string) []edit {
	namespace, name := inFleet(cluster, key)
	edits := make([]edit, 0, 4)
	own, annotations := "", []jsonscan.Named(nil)
	for i, more := 1, true; more; {
		var m jsonscan.Named
		if m, i, more = jsonscan.Next(meta, i); !more {
			break
		}
		switch {
		case m.Is("name"):
			edits = append(edits, edit{m.From, m.To, jsonscan.Quote(name)})
		case m.Is("namespace") && namespace != "":
			edits = append(edits, edit{m.From, m.To, jsonscan.Quote(namespace)})
		case m.Is("resourceVersion"):
			own = jsonscan.Unquoted(meta[m.From:m.To])
			edits = append(edits, edit{m.From, m.To, `"` + version + `"`})
		case m.Is("annotations"):
			annotations = append(annotations, m)
		}
	}
	marks := `"` + clusterAnnotation + `":"` + cluster + `","` + versionAnnotation + `":` + jsonscan.Quote(own)
	for _, m := range annotations {
		edits = append(edits, annotate(meta, m, marks))
	}
	if len(annotations) == 0 {
		edits = append(edits, edit{1, 1, `"annotations":{` + marks + `},`})
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	return edits
}

// annotate puts marks behind an object's annotations, in the place of any of their names that are there already: those
// of a mirror that this cluster is, or of an object that says that it is from elsewhere.
func annotate(meta []byte, m jsonscan.Named, marks string) edit {
	if meta[m.From] != '{' {
		return edit{m.From, m.To, "{" + marks + "}"}
	}
	own := meta[m.From:m.To]
	if mayBeMarked(own) {
		return edit{m.From, m.To, "{" + string(unmarked(own)) + marks + "}"}
	}
	if jsonscan.Space(own, 1) < len(own)-1 {
		marks = "," + marks
	}
	return edit{m.To - 1, m.To - 1, marks}
}

// mayBeMarked reports whether annotations can have one of the marks' names, which may be written with escapes. To search for
// them takes a fraction of the time that to walk over the annotations does, and hardly any object has them.
func mayBeMarked(annotations []byte) bool {
	return bytes.Contains(annotations, []byte("mirador.dev/")) || bytes.Contains(annotations, []byte(`\u`)) || bytes.Contains(annotations, []byte(`\/`))
}

// unmarked returns the members of annotations but for the marks, each with a comma behind it.
func unmarked(annotations []byte) (kept []byte) {
	for i := 1; ; {
		m, next, more := jsonscan.Next(annotations, i)
		if !more {
			return kept
		}
		if !m.Is(clusterAnnotation) && !m.Is(versionAnnotation) {
			kept = append(append(kept, annotations[jsonscan.Space(annotations, i):m.To]...), ',')
		}
		i = next
	}
}
