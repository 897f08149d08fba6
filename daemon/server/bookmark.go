package server

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// bookmark makes the line that tells how far a watch is: an object of its kind with nothing
// but a version, as the API server makes it.
func bookmark(r *renderer, gvk schema.GroupVersionKind, version string, initialEnd, columns bool) ([]byte, error) {
	meta := metav1.ObjectMeta{ResourceVersion: version}
	if initialEnd {
		meta.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	obj, err := blank(gvk, meta)
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

// blank gives an object of a kind that has metadata and nothing else.
func blank(gvk schema.GroupVersionKind, meta metav1.ObjectMeta) ([]byte, error) {
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
