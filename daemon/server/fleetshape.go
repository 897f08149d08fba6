package server

import (
	"bytes"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/internal/jsonscan"
	"github.com/mirador-k8s/mirador/object"
)

// fleetShape defines how objects of one resource are shown at /fleet. It is safe for concurrent use.
type fleetShape struct {
	kind       schema.GroupKind
	references *refNode // nil if the objects have no references except those to owners
	// clusterScoped reports whether objects of a kind have no namespace in a cluster.
	clusterScoped func(cluster, apiVersion, kind string) bool
}

func (s *Server) fleetShape(res *fleet.Resource) *fleetShape {
	gk := res.GVK().GroupKind()
	return &fleetShape{kind: gk, references: builtinReferences()[gk], clusterScoped: s.clusterScoped}
}

// prefixKind returns the kind argument for fleetPrefix.
func (f *fleetShape) prefixKind() string {
	if f.kind == namespaceKind {
		return namespaceKind.Kind
	}
	return ""
}

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// clusterScoped reports whether objects of a kind have no namespace in a cluster. Unknown kinds count as namespaced.
func (s *Server) clusterScoped(cluster, apiVersion, kind string) bool {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return false
	}
	switch gv.Group {
	case "":
		return kind == "Node" || kind == "Namespace" || kind == "PersistentVolume"
	case "apps", "batch", "autoscaling", "policy":
		return false // most owners are of these groups
	}
	c, ok := s.fleet.Cluster(cluster)
	if !ok {
		return false
	}
	namespaced, served := s.served.of(c).namespaced[schema.GroupKind{Group: gv.Group, Kind: kind}]
	return served && !namespaced
}

// fleetPrefix returns the prefix of the name of an object without a namespace.
func fleetPrefix(cluster, kind string) string {
	if kind == namespaceKind.Kind {
		return cluster + "."
	}
	return cluster + ":"
}

// The annotations with the cluster of an object and its version there.
const (
	clusterAnnotation = "mirador.dev/cluster"
	versionAnnotation = "mirador.dev/resource-version"
)

// edit replaces the bytes between two offsets.
type edit struct {
	from, to int
	with     string
}

// appendForFleet appends an object as /fleet shows it.
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

// appendFleetEdits appends the edits of an object's metadata, which begins at offset at. It reads the metadata once
// for all fields. A field that appears twice, which no API server sends, is changed twice, so that clients see the
// name of the cluster whichever of them they use.
func appendFleetEdits(edits []edit, meta []byte, at int, cluster string, key object.Key, version string,
	shape *fleetShape) []edit {
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

// annotate adds marks at the end of an object's annotations and removes annotations of the same names, which objects
// have if the cluster is a mirror itself, or if they claim to be from another cluster.
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

// mayBeMarked reports whether annotations may contain one of the marks' names, possibly with escapes. A search is much
// cheaper than parsing the annotations, and hardly any object has the names.
func mayBeMarked(annotations []byte) bool {
	return bytes.Contains(annotations, []byte("mirador.dev/")) || bytes.Contains(annotations, []byte(`\u`)) ||
		bytes.Contains(annotations, []byte(`\/`))
}

// unmarked returns the members of annotations except the marks, each followed by a comma.
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

// shownBuffers recycles the buffers of decoded objects.
var shownBuffers = sync.Pool{New: func() any { return new([]byte) }}

// bytes returns a function that appends objects of a cluster as selectors see them: as they are shown, except for
// their versions. It returns nil if f is nil.
func (f *fleetShape) bytes(cluster string) func(e *fleet.Entry, dst []byte) []byte {
	if f == nil {
		return nil
	}
	return func(e *fleet.Entry, dst []byte) []byte {
		raw := shownBuffers.Get().(*[]byte)
		*raw = fleet.Bytes(e, (*raw)[:0])
		dst = appendForFleet(dst, *raw, cluster, e.Key, string(e.Version), f)
		if cap(*raw) <= maxShownBuffer {
			shownBuffers.Put(raw)
		}
		return dst
	}
}

// maxShownBuffer is the size of the largest buffer that is recycled.
const maxShownBuffer = 1 << 20
