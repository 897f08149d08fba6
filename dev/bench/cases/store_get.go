package cases

import (
	"context"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/bench/measure"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// readFor is how long reads are measured.
const readFor = 300 * time.Millisecond

// recent is how many keys count as recently read.
const recent = 32

// storeGet measures reading one object by key: every key once in random order, and a few keys repeatedly.
func storeGet() harness.Case {
	indexer := func(open func([]*corev1.Pod) (clientgo.Indexer, error)) func(context.Context, *harness.Params,
		[]*corev1.Pod) (harness.Figures, error) {
		return func(_ context.Context, _ *harness.Params, pods []*corev1.Pod) (harness.Figures, error) {
			in, err := open(pods)
			if err != nil {
				return nil, err
			}
			keys := keysOf(pods)
			get := func(key string) bool { _, ok, _ := in.GetByKey(key); return ok }
			return thrice(func() harness.Figures {
				return harness.Figures{"get": getEach(keys, get), "again": getEach(repeated(keys), get)}
			}), nil
		}
	}
	c := harness.Case{Name: "store-get", Variants: []harness.Variant{
		storeVariant(peer, indexer(peerStore)), storeVariant(compat, indexer(compatStore))}}
	for _, l := range layouts {
		c.Variants = append(c.Variants,
			storeVariant(l.String(), func(_ context.Context, _ *harness.Params, pods []*corev1.Pod) (harness.Figures, error) {
				return getOurs(l, pods)
			}))
	}
	for _, l := range []store.Layout{store.Live, store.Shared} {
		c.Rows = append(c.Rows,
			harness.Row{Name: "Store.Get by key", Layout: l.String(), Unit: "ns", Sheltered: true, Ours: l.String(), Peer: peer,
				Figure: "get", Goal: harness.Ratio(0.9)},
			harness.Row{Name: "Snapshot.Get by key", Layout: l.String(), Unit: "ns", Sheltered: true, Ours: l.String(),
				Peer: peer, Figure: "snapshot", PeerFigure: "get", Goal: harness.Ratio(1.5)})
	}
	c.Rows = append(c.Rows,
		harness.Row{Name: "Store.Get by key, through compat", Layout: store.Live.String(), Unit: "ns", Sheltered: true,
			Ours: compat, Peer: peer, Figure: "get"},
		harness.Row{Name: "Store.Get by key, decoded in us", Layout: store.Packed.String(), Unit: "us", Sheltered: true,
			Ours: store.Packed.String(), Figure: "get us", Goal: harness.AtMost(60)},
		harness.Row{Name: "Snapshot.Get by key, decoded in us", Layout: store.Packed.String(), Unit: "us", Sheltered: true,
			Ours: store.Packed.String(), Figure: "snapshot us"},
		harness.Row{Name: "Store.Get by key, recently read", Layout: store.Packed.String(), Unit: "ns", Sheltered: true,
			Ours: store.Packed.String(), Peer: peer, Figure: "again", Goal: harness.Ratio(1)})
	return c
}

func getOurs(l store.Layout, pods []*corev1.Pod) (harness.Figures, error) {
	keys := keysOf(pods)
	w, err := ourStore(l, 0, pods)
	if err != nil {
		return nil, err
	}
	r, snap := w.Reader(), w.Reader().Snapshot()
	get := func(key string) bool { _, ok := r.Get(object.Key(key)); return ok }
	fromSnapshot := func(key string) bool { _, ok := snap.Get(object.Key(key)); return ok }
	few := repeated(keys)
	if l == store.Packed { // a read decodes the object: read only some
		keys = keys[:min(len(keys), 1_000)]
	}
	f := thrice(func() harness.Figures {
		return harness.Figures{"again": getEach(few, get), "get": getEach(keys, get),
			"snapshot": getEach(keys, fromSnapshot)}
	})
	f["get us"], f["snapshot us"] = f["get"]/1000, f["snapshot"]/1000
	return f, nil
}

// thrice returns the medians of three measurements. Other load on the same core can double the time of a Get for
// longer than one of them takes.
func thrice(measure func() harness.Figures) harness.Figures {
	return harness.Medians([]harness.Figures{measure(), measure(), measure()})
}

// repeated returns a few keys many times.
func repeated(keys []string) []string {
	few := make([]string, 0, len(keys))
	for i := range len(keys) {
		few = append(few, keys[i%min(recent, len(keys))])
	}
	return few
}

func getEach(keys []string, get func(string) bool) float64 {
	return measure.PerOp(len(keys), readFor, func() {
		found := 0
		for _, k := range keys {
			if get(k) {
				found++
			}
		}
		runtime.KeepAlive(found) // so that the compiler keeps the measured calls
	})
}
