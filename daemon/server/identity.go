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
// "eu:node-1". A Namespace object has the name that paths and kubectl -n take, "eu.web". Neither a cluster's name
// nor a namespace has a dot or a colon in it.
const (
	clusterAnnotation = "mirador.dev/cluster"
	versionAnnotation = "mirador.dev/resource-version"
)

// inFleet gives the namespace and name under which all clusters' view shows an object.
func inFleet(cluster string, key object.Key, shape *fleetShape) (namespace, name string) {
	namespace, name = key.Split()
	if namespace == "" {
		return "", fleetPrefix(cluster, shape.prefixKind()) + name
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
func appendForFleet(dst, obj []byte, cluster string, key object.Key, version string, shape *fleetShape) []byte {
	from, to, ok := jsonscan.Member(obj, "metadata")
	if !ok || obj[from] != '{' {
		return append(dst, obj...)
	}
	var room [8]edit
	edits := appendFleetEdits(room[:0], obj[from:to], from, cluster, key, version, shape)
	edits = shape.appendReferences(edits, obj, from, to, cluster)
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	at := 0
	for _, e := range edits {
		dst = append(append(dst, obj[at:e.from]...), e.with...)
		at = e.to
	}
	return append(dst, obj[at:]...)
}

// appendFleetEdits appends what is changed in an object's metadata, which begins at an offset. One way through it
// finds all: with one for each field, this took longer than to unpack the object. A field that is there twice, which
// no API server sends, is changed twice, so that whatever counts for a reader says which cluster it is of.
func appendFleetEdits(edits []edit, meta []byte, at int, cluster string, key object.Key, version string, shape *fleetShape) []edit {
	namespace, name := inFleet(cluster, key, shape)
	own, annotations := "", []jsonscan.Named(nil)
	for i, more := 1, true; more; {
		var m jsonscan.Named
		if m, i, more = jsonscan.Next(meta, i); !more {
			break
		}
		switch {
		case m.Is("name"):
			edits = append(edits, edit{at + m.From, at + m.To, jsonscan.Quote(name)})
		case m.Is("namespace") && namespace != "":
			edits = append(edits, edit{at + m.From, at + m.To, jsonscan.Quote(namespace)})
		case m.Is("resourceVersion"):
			own = jsonscan.Unquoted(meta[m.From:m.To])
			edits = append(edits, edit{at + m.From, at + m.To, `"` + version + `"`})
		case m.Is("annotations"):
			annotations = append(annotations, m)
		case m.Is("ownerReferences"):
			edits = shape.appendOwners(edits, meta[m.From:m.To], at+m.From, cluster, namespace != "")
		}
	}
	marks := `"` + clusterAnnotation + `":"` + cluster + `","` + versionAnnotation + `":` + jsonscan.Quote(own)
	for _, m := range annotations {
		e := annotate(meta, m, marks)
		edits = append(edits, edit{at + e.from, at + e.to, e.with})
	}
	if len(annotations) == 0 {
		added := `"annotations":{` + marks + `}`
		if jsonscan.Space(meta, 1) < len(meta)-1 {
			added += ","
		}
		edits = append(edits, edit{at + 1, at + 1, added})
	}
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

// mayBeMarked reports whether annotations can have one of the marks' names, which may be written with escapes. To
// search for them takes a fraction of the time that to walk over the annotations does, and hardly any object has them.
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
