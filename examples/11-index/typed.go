package index

import (
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// Typed does the same with the typed store. Index functions receive pods, and all reads of one snapshot see the same
// state, whatever is written meanwhile.
func Typed(out io.Writer) error {
	writer, err := store.New(store.Options[*v1.Pod]{Indexes: map[string]store.IndexFunc[*v1.Pod]{
		"namespace": func(p *v1.Pod) ([]string, error) { return []string{p.Namespace}, nil },
		"app":       func(p *v1.Pod) ([]string, error) { return []string{p.Labels["app"]}, nil },
	}})
	if err != nil {
		return err
	}
	pod1, pod2 := twoPods()
	writer.Begin()
	for _, pod := range []*v1.Pod{pod1, pod2} {
		writer.Put(object.Item[*v1.Pod]{Key: object.NewKey(pod.Namespace, pod.Name), Value: pod})
	}
	writer.Commit()

	snap := writer.Reader().Snapshot()
	for _, ask := range []struct{ index, value string }{{"namespace", "ns1"}, {"app", "l2"}, {"app", "ns1"}} {
		keys, pods := []object.Key{}, []*v1.Pod{}
		for pod := range snap.ByIndex(ask.index, ask.value) {
			keys, pods = append(keys, object.NewKey(pod.Namespace, pod.Name)), append(pods, pod)
		}
		fmt.Fprintln(out, ask.index, "=", ask.value, ":", keys)
		for _, pod := range pods {
			fmt.Fprintln(out, " ", pod.Name, true)
		}
	}
	return nil
}
