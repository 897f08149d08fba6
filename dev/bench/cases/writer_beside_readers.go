package cases

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/store"
)

const listingReaders = 8

// writerBesideReaders measures how many updates per second one writer achieves while eight readers list everything
// without pause. Each update has another state than the stored one, and a later version.
func writerBesideReaders() harness.Case {
	variant := func(name string, open func([]*corev1.Pod) (writer, lister, error)) harness.Variant {
		return harness.Variant{Name: name, Run: func(_ context.Context, p *harness.Params) (harness.Figures, error) {
			pods, set := realPods(storePods(p))
			spread(pods, storeNamespaces)
			changed := changes(set, pods, p.Size(10_000, 500))
			w, list, err := open(pods)
			if err != nil {
				return nil, err
			}
			return contend(w, list, [][]*corev1.Pod{changed, pods[:len(changed)]},
				time.Duration(p.Size(2000, 300))*time.Millisecond)
		}}
	}
	indexer := func(open func([]*corev1.Pod) (clientgo.Indexer, error)) func([]*corev1.Pod) (writer, lister, error) {
		return func(pods []*corev1.Pod) (writer, lister, error) {
			in, err := open(pods)
			return indexWriter{in}, func(*atomic.Bool) { iterateList(in) }, err
		}
	}
	c := harness.Case{Name: "writer-beside-readers", Variants: []harness.Variant{
		variant(peer, indexer(peerStore)), variant(compat, indexer(compatStore))}}
	row := func(name, layout, ours string, goal harness.Goal) {
		c.Rows = append(c.Rows, harness.Row{Name: name, Layout: layout, Unit: "updates/s", Ours: ours, Peer: peer,
			Figure: "rate", Goal: goal})
	}
	for _, l := range layouts {
		c.Variants = append(c.Variants, variant(l.String(), func(pods []*corev1.Pod) (writer, lister, error) {
			return besideIterators(l, pods)
		}))
		goal := harness.Goal{}
		if l == store.Live {
			goal = harness.Times(2000)
		}
		row("writer while 8 readers list without pause", l.String(), l.String(), goal)
		c.Rows = append(c.Rows, harness.Row{Name: "writer while 8 readers list without pause: what they read",
			Layout: l.String(), Unit: "lists/s",
			Ours: l.String(), Peer: peer, Figure: "lists"})
	}
	row("writer while 8 readers list without pause, through compat", store.Live.String(), compat, harness.Goal{})
	floor := variant(noStore, func(pods []*corev1.Pod) (writer, lister, error) {
		_, list, err := besideIterators(store.Live, pods)
		return &nowhere{}, list, err
	})
	floor.Floor = true
	c.Variants = append(c.Variants, floor)
	row("the same readers, the writer has no store: key, version and index values", store.Live.String(),
		noStore, harness.Goal{})
	return c
}

// lister reads everything, and may return early once stop is set.
type lister func(stop *atomic.Bool)

// besideIterators returns a store of ours and what its readers do.
func besideIterators(l store.Layout, pods []*corev1.Pod) (writer, lister, error) {
	w, err := ourStore(l, 0, pods)
	if err != nil {
		return nil, nil, err
	}
	r := w.Reader()
	return lentWriter{ownWriter{w}}, func(stop *atomic.Bool) {
		n := 0
		for range r.Snapshot().Objects() {
			// stop is checked rarely: a packed list takes seconds, and all others take less time than the checks would.
			if n++; n%1000 == 0 && stop.Load() {
				return
			}
		}
	}, nil
}

// lentWriter writes objects that share parts with others.
type lentWriter struct{ ownWriter }

func (w lentWriter) update(p *corev1.Pod) error {
	it := podItem(p)
	it.Owned = false
	w.Begin()
	w.Put(it)
	w.Commit()
	return nil
}

func iterateList(in clientgo.Indexer) {
	for range in.List() {
	}
}

// contend writes alternating states of the objects for the given time. The clock is stopped while their next versions
// are made; the readers continue.
func contend(w writer, list lister, states [][]*corev1.Pod, during time.Duration) (harness.Figures, error) {
	var stop atomic.Bool
	var readers sync.WaitGroup
	var begun, lists atomic.Int64
	for range listingReaders {
		readers.Go(func() {
			for !stop.Load() {
				begun.Add(1)
				list(&stop)
				lists.Add(1)
			}
		})
	}
	for begun.Load() < listingReaders { // all readers have started
		time.Sleep(time.Millisecond)
	}
	defer readers.Wait()
	defer stop.Store(true)
	var took time.Duration
	var written, read int64
	for round := 0; took < during; round++ {
		next := laterVersions(states[round%len(states)], round)
		before, began := lists.Load(), time.Now()
		for _, p := range next {
			if took+time.Since(began) >= during {
				break
			}
			if err := w.update(p); err != nil {
				return nil, err
			}
			written++
		}
		took += time.Since(began)
		read += lists.Load() - before
	}
	return harness.Figures{"rate": float64(written) / took.Seconds(), "lists": float64(read) / took.Seconds()}, nil
}

// laterVersions returns objects with a later version than those of earlier rounds, which share everything below their
// first level.
func laterVersions(of []*corev1.Pod, round int) []*corev1.Pod {
	all := make([]*corev1.Pod, len(of))
	for i := range of {
		next := *of[i]
		next.ResourceVersion = strconv.Itoa(firstChange + (round+1)*len(of) + i)
		all[i] = &next
	}
	return all
}
