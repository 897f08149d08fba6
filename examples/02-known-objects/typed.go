package known

import (
	"fmt"
	"io"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/queue"
)

// pods has the objects that the consumer of the typed queue already knows.
type pods map[string]*v1.Pod

// ListKeys returns the names of all pods.
func (p pods) ListKeys() []string { return slices.Sorted(maps.Keys(p)) }

// GetByKey returns one pod.
func (p pods) GetByKey(key string) (*v1.Pod, bool, error) {
	pod, ok := p[key]
	return pod, ok, nil
}

// Typed does the same with the typed queue. The object of a missed deletion is a pod, so nothing is unwrapped, and a
// lister with wrong methods or types does not compile.
func Typed(out io.Writer) error {
	known := pods{"a": newPod("a"), "b": newPod("b")}
	fifo, err := queue.NewDeltaFIFO(queue.Options[*v1.Pod]{
		Key:   func(p *v1.Pod) (string, error) { return p.Name, nil },
		Known: known,
	})
	if err != nil {
		return err
	}
	pop := func() error {
		for len(fifo.ListKeys()) > 0 {
			_, err := fifo.Pop(func(key string, deltas queue.Deltas[*v1.Pod], isInInitialList bool) error {
				for _, d := range deltas {
					title := d.Type.String()
					if d.Type == object.Resynced { // client-go calls it Sync
						title = "Sync"
					}
					fmt.Fprintln(out, " ", title, ":", d.Object.Name)
					if d.Type == object.Deleted {
						delete(known, key)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}

	for _, step := range []struct {
		title string
		do    func() error
	}{
		{"delete a, which is known, and x, which is not:", func() error {
			if err := fifo.Delete(newPod("a")); err != nil {
				return err
			}
			return fifo.Delete(newPod("x"))
		}},
		{"a list that has c and no longer b:", func() error {
			known["c"] = newPod("c")
			return fifo.Replace([]*v1.Pod{newPod("c")}, "7")
		}},
		{"resync:", fifo.Resync},
	} {
		fmt.Fprintln(out, step.title)
		if err := step.do(); err != nil {
			return err
		}
		if err := pop(); err != nil {
			return err
		}
	}
	return nil
}
