// Package index finds objects by the values that an index function returns: by namespace, with client-go's own
// function, and by the label app.
//
// Corrected in the original programs: one of them names the index by label "namespace" and then looks for a namespace
// in it, which finds nothing, because the values of that index are labels. The output has the names of the pods
// instead of the whole objects.
package index

import (
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// LabelsIndexFunc returns the value under which an object is found: its label app.
func LabelsIndexFunc(obj interface{}) ([]string, error) {
	meta, err := meta.Accessor(obj)
	if err != nil {
		return []string{""}, fmt.Errorf("object has no meta: %v", err)
	}
	return []string{meta.GetLabels()["app"]}, nil
}

func twoPods() (pod1, pod2 *v1.Pod) {
	pod1 = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod1", Labels: map[string]string{
		"app": "l1",
	}, Namespace: "ns1"}}
	pod2 = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod2", Labels: map[string]string{
		"app": "l2",
	}, Namespace: "ns2"}}
	return pod1, pod2
}

// Compat is the original programs, written with client-go's names.
func Compat(out io.Writer) error {
	indexers := cache.Indexers{"namespace": cache.MetaNamespaceIndexFunc, "app": LabelsIndexFunc}
	pod1, pod2 := twoPods()

	myindex := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, indexers)
	myindex.Add(pod1)
	myindex.Add(pod2)

	for _, ask := range []struct{ index, value string }{{"namespace", "ns1"}, {"app", "l2"}, {"app", "ns1"}} {
		keys, err := myindex.IndexKeys(ask.index, ask.value)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, ask.index, "=", ask.value, ":", keys)
		for _, key := range keys {
			obj, exists, err := myindex.GetByKey(key)
			if err != nil {
				return err
			}
			fmt.Fprintln(out, " ", obj.(*v1.Pod).Name, exists)
		}
	}
	return nil
}
