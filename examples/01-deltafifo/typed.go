package deltafifo

import (
	"errors"
	"fmt"
	"io"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/queue"
)

// Typed does the same with the typed queue. It saves type assertions, and Pop passes the key.
func Typed(out io.Writer) error {
	df, err := queue.NewDeltaFIFO(queue.Options[pod]{
		Key: func(p pod) (string, error) { return p.Name, nil },
	})
	if err != nil {
		return err
	}
	pod1, pod2, pod3 := newPod("pod1", 1), newPod("pod2", 2), newPod("pod3", 3)
	df.Add(pod1)
	df.Add(pod2)
	df.Add(pod3)
	fmt.Fprintln(out, df.List())

	pod1.Value = 1.1
	df.Update(pod1)
	df.Delete(pod1)
	fmt.Fprintln(out, df.List())
	df.Close()

	callbacks := map[object.ChangeType]string{
		object.Added: "执行新增回调", object.Updated: "执行更新回调", object.Deleted: "执行删除回调",
	}
	for {
		_, err := df.Pop(func(key string, deltas queue.Deltas[pod], isInInitialList bool) error {
			for _, d := range deltas {
				fmt.Fprintln(out, d.Type, ":", key, "value:", d.Object.Value)
				fmt.Fprintln(out, callbacks[d.Type])
			}
			return nil
		})
		if errors.Is(err, queue.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
