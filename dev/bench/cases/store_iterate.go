package cases

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/bench/measure"
	"github.com/mirador-k8s/mirador/store"
)

// storeIterate measures reading one namespace by index, 500 of 50,000, and reading the whole store. The loop takes
// each object and does not look into it.
func storeIterate() harness.Case {
	c := harness.Case{Name: "store-iterate", Variants: []harness.Variant{
		storeVariant(peer, func(_ context.Context, _ *harness.Params, pods []*corev1.Pod) (harness.Figures, error) {
			return iterateIndexer(peerStore, pods)
		}),
		storeVariant(compat, func(_ context.Context, _ *harness.Params, pods []*corev1.Pod) (harness.Figures, error) {
			return iterateIndexer(compatStore, pods)
		}),
	}}
	row := func(name, layout, ours, figure, unit string, goal harness.Goal) {
		sheltered := figure == "index" // a whole list includes its collections, which run on other threads
		c.Rows = append(c.Rows, harness.Row{Name: name, Layout: layout, Unit: unit, Sheltered: sheltered, Ours: ours,
			Peer: peer, Figure: figure, Goal: goal})
	}
	for _, l := range layouts {
		c.Variants = append(c.Variants,
			storeVariant(l.String(), func(_ context.Context, _ *harness.Params, pods []*corev1.Pod) (harness.Figures, error) {
				return iterateOurs(l, pods)
			}))
		index, all := harness.Goal{}, harness.Goal{}
		name := ""
		if l == store.Packed {
			name = ", decoded"
		} else {
			index, all = harness.Ratio(0.05), harness.Ratio(0.06)
		}
		row("one namespace by index (500 of 50k), iterated"+name, l.String(), l.String(), "index", "us", index)
		row("the whole store (50k), iterated"+name, l.String(), l.String(), "all", "ms", all)
	}
	row("one namespace by index (500 of 50k), through compat's ByIndex", store.Live.String(), compat, "index",
		"us", harness.Ratio(0.3))
	row("the whole store (50k), through compat's List", store.Live.String(), compat, "all", "ms", harness.Ratio(0.3))
	// The least cost of a List that returns a new slice: the slice, copied from another, and the collections that it
	// causes in a process that holds the pods.
	floor := storeVariant("slice",
		func(_ context.Context, _ *harness.Params, pods []*corev1.Pod) (harness.Figures, error) {
			held := make([]any, len(pods))
			for i, p := range pods {
				held[i] = p
			}
			took := measure.PerOpCollected(func() { runtime.KeepAlive(slices.Clone(held)) })
			return harness.Figures{"all": took / 1e6}, nil
		})
	floor.Floor = true
	c.Variants = append(c.Variants, floor)
	row("a fresh slice of them (50k) and no store", "", "slice", "all", "ms", harness.Goal{})
	return c
}

func namespaceAt(i int) string { return fmt.Sprintf("ns-%d", i%storeNamespaces) }

func iterateIndexer(open func([]*corev1.Pod) (clientgo.Indexer, error), pods []*corev1.Pod) (harness.Figures, error) {
	in, err := open(pods)
	if err != nil {
		return nil, err
	}
	return iterate(len(pods), readFor,
		func(namespace string) int {
			n, last := 0, any(nil)
			objects, _ := in.ByIndex(byNamespace, namespace)
			for _, obj := range objects {
				last, n = obj, n+1
			}
			runtime.KeepAlive(last) // so that the compiler keeps the loop
			return n
		},
		func() int {
			n, last := 0, any(nil)
			for _, obj := range in.List() {
				last, n = obj, n+1
			}
			runtime.KeepAlive(last)
			return n
		})
}

func iterateOurs(l store.Layout, pods []*corev1.Pod) (harness.Figures, error) {
	w, err := ourStore(l, 0, pods)
	if err != nil {
		return nil, err
	}
	r := w.Reader()
	budget := readFor
	if l == store.Packed {
		budget = 0 // each object is decoded, and a few rounds take seconds
	}
	return iterate(len(pods), budget,
		func(namespace string) int {
			n, last := 0, (*corev1.Pod)(nil)
			for p := range r.Snapshot().ByIndex(byNamespace, namespace) {
				last, n = p, n+1
			}
			runtime.KeepAlive(last)
			return n
		},
		func() int {
			n, last := 0, (*corev1.Pod)(nil)
			for p := range r.Snapshot().Objects() {
				last, n = p, n+1
			}
			runtime.KeepAlive(last)
			return n
		})
}

// allocates reports whether f produces enough garbage to matter.
func allocates(f func()) bool {
	before, _ := measure.Allocated()
	f()
	after, _ := measure.Allocated()
	return after-before > 100_000
}

// iterate measures both reads, and checks that they return every object.
func iterate(pods int, budget time.Duration, index func(namespace string) int,
	all func() int) (harness.Figures, error) {
	if got := index(namespaceAt(0)); got != pods/storeNamespaces {
		return nil, fmt.Errorf("the index has %d pods of a namespace, want %d", got, pods/storeNamespaces)
	}
	if got := all(); got != pods {
		return nil, fmt.Errorf("the store has %d pods, want %d", got, pods)
	}
	next := 0
	perIndex := measure.PerOp(10, budget, func() {
		for range 10 {
			next++
			index(namespaceAt(next))
		}
	})
	var whole float64
	if allocates(func() { all() }) {
		whole = measure.PerOpCollected(func() { all() })
	} else {
		whole = measure.PerOp(1, budget, func() { all() })
	}
	return harness.Figures{"index": perIndex / 1e3, "all": whole / 1e6}, nil
}
