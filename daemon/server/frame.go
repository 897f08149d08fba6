package server

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/internal/jsonscan"
)

// frameKind identifies one encoding of a change.
type frameKind struct {
	what    kwatch.EventType
	form    form
	include metav1.IncludeObjectPolicy
}

// frame returns the line of a watch for the change. Watches of the same kind share it.
func (c *change) frame(r *renderer, what kwatch.EventType, columns bool) ([]byte, error) {
	kind := frameKind{what, r.form, r.include}
	if columns || r.own {
		return c.encode(r, what, columns) // only the first line of a watch has columns; own rows are not shared
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.frames[kind]; b != nil {
		return b, nil
	}
	b, err := c.encode(r, what, false)
	if err != nil {
		return nil, err
	}
	if c.frames == nil {
		c.frames = make(map[frameKind][]byte, 1)
	}
	c.frames[kind] = b
	return b, nil
}

func (c *change) encode(r *renderer, what kwatch.EventType, columns bool) ([]byte, error) {
	e := c.now
	if what == kwatch.Deleted && c.old != nil {
		e = c.old // an object that no longer matches a selector is shown as it was when it matched
	}
	return encodeFrame(r, what, c.cluster, e, c.version, columns)
}

// encodeFrame encodes one line of a watch. For a deleted object, version is that of the deletion.
func encodeFrame(r *renderer, what kwatch.EventType, cluster string, e *fleet.Entry, version string,
	columns bool) (_ []byte, err error) {
	dst := append(append([]byte(`{"type":"`), what...), `","object":`...)
	if what == kwatch.Deleted && r.fleet == nil && string(e.Version) != version {
		r.shown = withVersion(r.shown[:0], fleet.Bytes(e, r.raw[:0]), version)
	} else {
		r.shown = r.show(r.shown[:0], cluster, e, version)
	}
	obj := r.shown
	switch r.form {
	case metadata:
		dst, err = appendPartial(dst, obj)
	case asTable:
		if dst, err = r.tableHead(dst, metav1.ListMeta{ResourceVersion: version}, columns); err == nil {
			dst, err = r.row(dst, cluster, e.Key, obj)
			dst = append(dst, "]}"...)
		}
	default:
		dst = append(dst, obj...)
	}
	return append(dst, "}\n"...), err
}

// withVersion appends an object with another version.
func withVersion(dst, obj []byte, version string) []byte {
	from, to, ok := jsonscan.Member(obj, "metadata")
	if !ok {
		return append(dst, obj...)
	}
	a, b, ok := jsonscan.Member(obj[from:to], "resourceVersion")
	if !ok {
		return append(dst, obj...)
	}
	dst = append(append(dst, obj[:from+a]...), '"')
	return append(append(append(dst, version...), '"'), obj[from+b:]...)
}

// bookmark encodes a bookmark: an object of the watched kind with nothing but a version, as an API server sends it.
func bookmark(r *renderer, gvk schema.GroupVersionKind, version string, initialEnd, columns bool) ([]byte, error) {
	meta := metav1.ObjectMeta{ResourceVersion: version}
	if initialEnd {
		meta.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	obj, err := emptyObject(gvk, meta)
	if err != nil {
		return nil, err
	}
	dst := []byte(`{"type":"` + string(kwatch.Bookmark) + `","object":`)
	switch r.form {
	case metadata:
		dst, err = appendPartial(dst, obj)
	case asTable:
		if dst, err = r.tableHead(dst, metav1.ListMeta{ResourceVersion: version}, columns); err == nil {
			dst, err = r.row(dst, "", "", obj)
			dst = append(dst, "]}"...)
		}
	default:
		dst = append(dst, obj...)
	}
	return append(dst, "}\n"...), err
}

// emptyObject encodes an object of a kind that has metadata and nothing else.
func emptyObject(gvk schema.GroupVersionKind, meta metav1.ObjectMeta) ([]byte, error) {
	obj, err := scheme.Scheme.New(gvk)
	if m, ok := obj.(metav1.Object); err == nil && ok {
		m.SetResourceVersion(meta.ResourceVersion)
		m.SetAnnotations(meta.Annotations)
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		return json.Marshal(obj)
	}
	own := map[string]any{"resourceVersion": meta.ResourceVersion}
	if len(meta.Annotations) > 0 {
		own["annotations"] = meta.Annotations
	}
	return json.Marshal(map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "metadata": own})
}
