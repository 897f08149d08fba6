package cases

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/bench/measure"
	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// updateBatch is how many updates are written together.
const updateBatch = 100

// writer is a store to write to, of either side.
type writer interface {
	update(p *corev1.Pod) error
	updateAll(pods []*corev1.Pod) error
}

// storeUpdate measures writing one changed object to a store with two indexes, singly and in batches. Each update
// changes the object's state and version.
func storeUpdate() harness.Case {
	variant := func(name string, open func([]*corev1.Pod) (writer, error)) harness.Variant {
		return harness.Variant{Name: name, Run: func(_ context.Context, p *harness.Params) (harness.Figures, error) {
			pods, set := realPods(storePods(p))
			spread(pods, storeNamespaces)
			return writeChanges(p, set, pods, open)
		}}
	}
	c := harness.Case{Name: "store-update", Variants: []harness.Variant{
		variant(peer, func(pods []*corev1.Pod) (writer, error) { in, err := peerStore(pods); return indexWriter{in}, err }),
		variant(compat, func(pods []*corev1.Pod) (writer, error) {
			in,
				err := compatStore(pods)
			return indexWriter{in}, err
		}),
		variant(noStore, func([]*corev1.Pod) (writer, error) { return &nowhere{}, nil }),
	}}
	c.Variants[len(c.Variants)-1].Floor = true
	row := func(name, layout, ours, figure string, goal harness.Goal) {
		c.Rows = append(c.Rows, harness.Row{Name: name, Layout: layout, Unit: "ns", Sheltered: true, Ours: ours, Peer: peer,
			Figure: figure, Goal: goal})
	}
	for _, l := range layouts {
		c.Variants = append(c.Variants, variant(l.String(), func(pods []*corev1.Pod) (writer, error) {
			w, err := ourStore(l, 0, pods)
			return ownWriter{w}, err
		}))
		goal := harness.Goal{}
		if l == store.Live {
			goal = harness.Ratio(0.7)
		}
		row("update of one object, one at a time", l.String(), l.String(), "one", goal)
		row("update of one object, in batches of 100", l.String(), l.String(), "batch", goal)
	}
	row("update of one object, one at a time, through compat", store.Live.String(), compat, "one", harness.Goal{})
	row("update of one object, in batches of 100, through compat", store.Live.String(), compat, "batch", harness.Goal{})
	row("key, version and index values of a changed object and no store", "", noStore, "one", harness.Goal{})
	return c
}

func writeChanges(p *harness.Params, set *testpods.Set, pods []*corev1.Pod,
	open func([]*corev1.Pod) (writer, error)) (harness.Figures, error) {
	half := p.Size(15_000, 500)
	changed := changes(set, pods, 2*half+updateBatch)
	w, err := open(pods)
	if err != nil {
		return nil, err
	}
	for _, p := range changed[2*half:] { // warm-up
		if err := w.update(p); err != nil {
			return nil, err
		}
	}
	runtime.GC()
	// A round of a live store is short, so there are several, which alternate between two states of each object.
	states := [][]*corev1.Pod{changed, pods}
	var rounds []harness.Figures
	for version, began := firstChange+len(changed), time.Now(); len(rounds) == 0 ||
		len(rounds) < updateRounds && time.Since(began) < time.Second/2; {
		state := states[len(rounds)%2][:2*half]
		for _, p := range state { // the store holds the other state, so these may be changed
			p.ResourceVersion = strconv.Itoa(version)
			version++
		}
		f, err := writeRound(w, state)
		if err != nil {
			return nil, err
		}
		rounds = append(rounds, f)
	}
	return harness.Medians(rounds), nil
}

// updateRounds is how many rounds there are, unless one takes long enough by itself.
const updateRounds = 5

// writeRound writes one half of the pods singly, the other in batches.
func writeRound(w writer, pods []*corev1.Pod) (harness.Figures, error) {
	half := len(pods) / 2
	var err error
	one := measure.Work(func() {
		for i := 0; i < half && err == nil; i++ {
			err = w.update(pods[i])
		}
	})
	batch := measure.Work(func() {
		for some := range slices.Chunk(pods[half:], updateBatch) {
			if err == nil {
				err = w.updateAll(some)
			}
		}
	})
	return harness.Figures{"one": float64(one) / float64(half), "batch": float64(batch) / float64(half)}, err
}

// indexWriter writes to a store of client-go's interface, in batches by its transaction.
type indexWriter struct{ clientgo.Indexer }

func (w indexWriter) update(p *corev1.Pod) error { return w.Update(p) }

func (w indexWriter) updateAll(pods []*corev1.Pod) error {
	transactions := make([]clientgo.Transaction, len(pods))
	for i, p := range pods {
		transactions[i] = clientgo.Transaction{Object: p, Type: clientgo.TransactionTypeUpdate}
	}
	in, ok := w.Indexer.(clientgo.TransactionStore)
	if !ok {
		return fmt.Errorf("%T has no transactions", w.Indexer)
	}
	if err := in.Transaction(transactions...); err != nil {
		return err
	}
	return nil
}

// noStore is the variant without a store.
const noStore = "no store"

// nowhere does the work that every store has to do: it makes an object's item and computes its index values.
type nowhere struct{ read int }

func (w *nowhere) update(p *corev1.Pod) error {
	it := podItem(p)
	values, err := podsByApp(p)
	w.read += len(it.Key) + len(it.Version) + len(values)
	return err
}

func (w *nowhere) updateAll(pods []*corev1.Pod) error {
	for _, p := range pods {
		if err := w.update(p); err != nil {
			return err
		}
	}
	return nil
}

type ownWriter struct{ *store.Writer[*corev1.Pod] }

func (w ownWriter) update(p *corev1.Pod) error {
	w.Begin()
	w.Put(podItem(p))
	w.Commit()
	return nil
}

func (w ownWriter) updateAll(pods []*corev1.Pod) error {
	w.Begin()
	for some := range slices.Chunk(pods, store.Together) {
		var items [store.Together]object.Item[*corev1.Pod]
		var keys [store.Together]object.Key
		for i, p := range some {
			items[i] = podItem(p)
			keys[i] = items[i].Key
		}
		w.Fetch(keys[:len(some)])
		for i := range some {
			w.Put(items[i])
		}
	}
	w.Commit()
	return nil
}
