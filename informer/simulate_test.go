package informer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

// simulated adapts the informer to the simulator.
type simulated struct {
	setup informertest.SimSetup
	*informer.Informer[*corev1.Pod]
	*informer.Stepped[*corev1.Pod]
	counts map[string]uint64 // of informers before this one
}

func newSimulated(setup informertest.SimSetup) (informertest.Simulated, error) {
	s := &simulated{setup: setup, counts: map[string]uint64{}}
	return s, s.build(nil)
}

// build makes the informer; one that starts from a state is always a new one.
func (s *simulated) build(from *informertest.SimState) error {
	src, err := kube.Typed[*corev1.Pod](s.setup.Config, &kube.Options{
		PageSize: s.setup.PageSize, ForceJSON: s.setup.JSON, WithoutInitialState: !s.setup.WatchList})
	if err != nil {
		return err
	}
	opts := &informer.Options[*corev1.Pod]{
		Name:       "pods",
		Logger:     slog.New(slog.DiscardHandler),
		Layout:     s.layout(),
		QueueBytes: s.setup.QueueBytes,
		Backoff:    reflector.Backoff{Rand: s.setup.Rand},
		OnProblem:  func(p informer.Problem) { s.setup.OnProblem(p.Doing, p.Key, p.Err, p.Wait) },
		Transform:  s.setup.Transform,
		Indexes:    informer.Indexes[*corev1.Pod]{},
	}
	opts.RunInSteps(func(q *informer.Queue[*corev1.Pod]) reflector.Sink[*corev1.Pod] {
		return &steppedSink{queue: q, bytes: s.setup.QueueBytes, wait: s.setup.Wait}
	}, s.setup.Go)
	if s.setup.Variant%6 != 1 { // one variant keeps no log
		opts.HistoryBytes, opts.HistoryAge = 20_000, time.Hour
	}
	for name, values := range s.setup.Indexes {
		opts.Indexes[name] = values
	}
	if from != nil {
		if from.Kept != nil {
			opts.Codec = wireCodec
		}
		if opts.StartFrom, err = stateFrom(from); err != nil {
			return err
		}
	}
	if s.Informer != nil {
		for doing, n := range s.Informer.Health().Problems {
			s.counts[doing] += n
		}
	}
	s.Informer, err = informer.New(src, opts)
	return err
}

// layout returns the layout of the store in this variant.
func (s *simulated) layout() store.Layout {
	return []store.Layout{store.Live, store.Live, store.Live, store.Shared, store.Shared, store.Packed}[s.setup.Variant%6]
}

// wireCodec decodes what a server sends, in both encodings, as the source of pods does.
var wireCodec = &object.Codec[*corev1.Pod]{
	Encode: podCodec.Encode,
	Decode: func(encoded []byte) (p *corev1.Pod, err error) {
		if p = new(corev1.Pod); len(encoded) > 0 && encoded[0] == '{' {
			err = json.Unmarshal(encoded, p)
		} else {
			err = p.Unmarshal(encoded)
		}
		p.Kind, p.APIVersion = "Pod", "v1"
		return p, err
	},
}

// packedSave is what is kept of a state in the packed layout. Its entries are restored as they are.
type packedSave struct {
	snap      *store.Snapshot[*corev1.Pod]
	lastEvent time.Time
}

// Save keeps the state packed if all of it is, and writes it otherwise.
func (s *simulated) Save() (*informertest.SimState, error) {
	state, err := s.Informer.State()
	if err != nil {
		return nil, err
	}
	out := &informertest.SimState{Version: state.Version}
	for i := range state.Items {
		out.Pods = append(out.Pods, state.Items[i].Value)
	}
	snap := s.Informer.Snapshot()
	packed := s.layout() == store.Packed
	for e := range snap.Entries() {
		_, ok := e.Packed()
		packed = packed && ok
	}
	if packed {
		out.Kept = packedSave{snap, state.LastEvent}
		return out, nil
	}
	var b bytes.Buffer
	err = state.Write(&b, nil)
	out.Kept = b.Bytes()
	return out, err
}

// stateFrom returns the state that was saved.
func stateFrom(from *informertest.SimState) (*informer.State[*corev1.Pod], error) {
	switch kept := from.Kept.(type) {
	case []byte:
		return informer.ReadState[*corev1.Pod](bytes.NewReader(kept), nil)
	case packedSave:
		state, err := packedState(kept.snap)
		state.LastEvent = kept.lastEvent
		return state, err
	}
	state := &informer.State[*corev1.Pod]{Version: from.Version}
	for _, p := range from.Pods {
		state.Items = append(state.Items, object.Item[*corev1.Pod]{Key: object.NewKey(p.Namespace, p.Name),
			Version: object.Version(p.ResourceVersion), UID: string(p.UID), Size: 200, Value: p})
	}
	return state, nil
}

// steppedSink returns control to the simulator while a list waits for room in the queue. Otherwise the list would
// wait for the consumer, which only the simulator runs.
type steppedSink struct {
	queue *informer.Queue[*corev1.Pod]
	bytes int
	wait  func(ready func() bool)
}

func (k *steppedSink) Push(ctx context.Context, deltas []object.Delta[*corev1.Pod]) error {
	room := func() bool {
		_, bytes := k.queue.Depth()
		return bytes < k.bytes || ctx.Err() != nil
	}
	for i := range deltas {
		if t := deltas[i].Type; t == object.ReplaceBegin || t == object.Replaced {
			k.wait(room)
		}
		if err := k.queue.Push(ctx, deltas[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (s *simulated) Start(from *informertest.SimState) error {
	if from != nil {
		if err := s.build(from); err != nil {
			return err
		}
	}
	var err error
	s.Stepped, err = s.Informer.Step(context.Background())
	return err
}

func (s *simulated) Handle(h informertest.SimHandler, handle func(informertest.Event)) (informertest.SimSubscription,
	error) {
	sub, err := s.Subscribe(informer.HandlerFunc[*corev1.Pod](handle),
		&informer.HandlerOptions{Name: h.Name, MaxBacklog: h.Backlog, Resync: h.Resync})
	if err != nil {
		return nil, err
	}
	return simSub{sub}, nil
}

type simSub struct {
	*fanout.Subscription[*store.Entry[*corev1.Pod]]
}

func (s simSub) Backlog() (int, uint64) {
	st := s.Stats()
	return st.Backlog, st.Coalesced
}

func (s *simulated) Stop(ctx context.Context) error { return s.Informer.Stop(ctx) }
func (s *simulated) Synced() bool                   { return s.HasSynced() }

func (s *simulated) Snapshot() informertest.SimSnapshot { return s.Informer.Snapshot() }

func (s *simulated) Health() informertest.SimHealth {
	h := s.Informer.Health()
	out := informertest.SimHealth{Err: h.Reflector.Err, Epoch: h.Epoch, Counts: h.Problems, Coalesced: h.QueueCoalesced}
	out.State, out.Version, out.LastEvent = h.Reflector.State.String(), h.Reflector.Version, h.Reflector.LastEvent
	for doing, n := range s.counts {
		out.Counts[doing] += n
	}
	return out
}

// Since reads the store's log.
func (s *simulated) Since(v object.Version) (iter.Seq2[object.Key, *corev1.Pod], bool) {
	log, err := s.Reader().Since(v)
	return func(yield func(object.Key, *corev1.Pod) bool) {
		for e := range log {
			var now *corev1.Pod
			if e.New != nil {
				now = e.New.Object()
			}
			if !yield(e.Key, now) {
				return
			}
		}
	}, err == nil
}

var _ informertest.Stepper = (*simulated)(nil)

// How much is simulated: make simulate sets these.
func simOptions(seeds int) informertest.SimOptions {
	o := informertest.SimOptions{First: number("SIM_SEED", 1), Seeds: int(number("SIM_SEEDS", uint64(seeds))),
		FailFast: os.Getenv("SIM_FAILFAST") != "", Whole: os.Getenv("SIM_WHOLE") != "",
		Command: "make simulate SEEDS=1 SEED=%d"}
	if os.Getenv("SIM_PROGRESS") != "" {
		o.Progress = os.Stderr
	}
	return o
}

func number(name string, or uint64) uint64 {
	n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
	if err != nil {
		return or
	}
	return n
}

// Each seed is run twice, and both histories must be identical. make simulate runs many more seeds, once each.
func TestSimulation(t *testing.T) {
	opts := simOptions(200)
	opts.Twice = os.Getenv("SIM_ONCE") == ""
	sum := informertest.Simulate(t, newSimulated, opts)
	if opts.Progress != nil {
		fmt.Fprint(os.Stderr, sum)
	}
	if sum.Seeds > 0 && sum.Fewest < 1000 {
		t.Errorf("a seed had %d steps; each must have 1,000", sum.Fewest)
	}
	if sum.Seeds < 200 {
		return // too few to check how often each fault occurs
	}
	for _, kind := range informertest.FaultKinds() {
		if n := sum.In[kind]; n*20 < sum.Seeds {
			t.Errorf("%q took effect in %d of %d seeds; each kind must be in one of twenty", kind, n, sum.Seeds)
		}
	}
}
