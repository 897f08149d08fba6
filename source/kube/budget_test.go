package kube

import (
	"runtime"
	"testing"

	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// The memory of one more packed pod of a known template stays within its budget, in the forms that the daemon and
// dynamic clients use.
func TestBudget_BytesAPodThatComesAsJSON(t *testing.T) {
	set := testpods.New(1, 4)
	pods := make([][]byte, 400)
	for i := range pods {
		pods[i] = encodeJSON(t, set.Pod(i))
	}
	t.Run("raw", func(t *testing.T) { holdPacked(t, rawCodec(), pods, 615) })
	t.Run("dynamic", func(t *testing.T) { holdPacked(t, unstructuredCodec(), pods, 615) })
}

func holdPacked[T any](t *testing.T, codec codec[T], pods [][]byte, budget int) {
	src := &Source[T]{codec: codec}
	decode, err := src.decoder(jsonWire{}, encoded)
	if err != nil {
		t.Fatal(err)
	}
	w, err := store.New(store.Options[T]{Layout: store.Packed, ReadCache: -1,
		OnError: func(key object.Key, _ string, err error) { t.Errorf("%s: %v", key, err) }})
	if err != nil {
		t.Fatal(err)
	}
	put := func(pods [][]byte) {
		w.Begin()
		for _, raw := range pods {
			item, err := decode(typeMeta{"v1", "Pod"}, raw)
			if err == nil {
				item.Value, err = item.Object()
			}
			if err != nil {
				t.Fatal(err)
			}
			w.Put(item)
		}
		w.Commit()
	}
	known := len(pods) / 4
	put(pods[:known])
	before := heapNow()
	put(pods[known:])
	each := (int(heapNow()) - int(before)) / (len(pods) - known)
	t.Logf("%d bytes a pod", each)
	if each > budget {
		t.Errorf("%d bytes a pod, at most %d", each, budget)
	}
	runtime.KeepAlive(w)
	runtime.KeepAlive(pods)
}
