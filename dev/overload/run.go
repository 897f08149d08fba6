package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
)

// run is an informer on a stream, with its handlers.
type run struct {
	plan   plan
	stream *stream
	inf    *informer.Informer[*thing]
	quick  []*quick
	subs   []*informer.Subscription[*thing]
	slow   *slow                          // nil if the plan has none
	behind *informer.Subscription[*thing] // the slow handler's subscription

	cancel context.CancelFunc
	ended  chan error
}

// begin starts a run; made, if not nil, is called with every object. The slow handler subscribes first, where it would
// delay the others most.
func begin(ctx context.Context, p plan, made func(*thing)) (*run, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	r := &run{plan: p, stream: newStream(p, made), ended: make(chan error, 1)}
	var err error
	r.inf, err = informer.New(r.stream, &informer.Options[*thing]{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if p.takes > 0 {
		r.slow = newSlow(p.takes)
		if r.behind, err = r.inf.Subscribe(r.slow, &informer.HandlerOptions{Name: "slow"}); err != nil {
			return nil, err
		}
		r.subs = append(r.subs, r.behind)
	}
	for n := range p.quick {
		q := newQuick(p)
		sub, err := r.inf.Subscribe(q, &informer.HandlerOptions{Name: fmt.Sprintf("quick %d", n)})
		if err != nil {
			return nil, err
		}
		r.quick, r.subs = append(r.quick, q), append(r.subs, sub)
	}
	ctx, r.cancel = context.WithCancel(ctx)
	go func() { r.ended <- r.inf.Run(ctx) }()
	return r, nil
}

// load waits until the stream has sent its last event, and samples the slow handler's state meanwhile.
func (r *run) load(ctx context.Context, every time.Duration, sample func(fanout.Stats)) error {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if r.behind != nil {
				sample(r.behind.Stats())
			} else {
				sample(fanout.Stats{})
			}
		case <-r.stream.said:
			return nil
		case err := <-r.ended:
			r.ended <- err
			return errors.Join(errors.New("the informer ended before the stream did"), err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settle waits until nothing waits for any handler.
func (r *run) settle(ctx context.Context) error {
	last := object.Version(fmt.Sprint(r.plan.keys + r.plan.events()))
	if err := r.inf.WaitVersion(ctx, last); err != nil {
		return err
	}
	seq := r.inf.Snapshot().Seq()
	t := time.NewTicker(10 * time.Millisecond)
	defer t.Stop()
	for _, sub := range r.subs {
		for st := sub.Stats(); st.LastSeq < seq || st.Backlog > 0; st = sub.Stats() {
			select {
			case <-t.C:
			case <-ctx.Done():
				return fmt.Errorf("%d events still wait for handler %q: %w", st.Backlog, sub.Name(), ctx.Err())
			}
		}
	}
	return nil
}

// end stops the informer and waits for it.
func (r *run) end() error {
	r.cancel()
	return <-r.ended
}

// faults returns the failed checks of a run that has settled.
func (r *run) faults() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for n, q := range r.quick {
		if q.events != r.plan.events() {
			say("quick handler %d received %d of %d events", n, q.events, r.plan.events())
		}
		if q.wrong != "" {
			say("quick handler %d: %s", n, q.wrong)
		}
	}
	if r.slow == nil {
		return out
	}
	st := r.behind.Stats()
	if got, want := st.Delivered+st.Coalesced, uint64(r.plan.keys+r.plan.events()); got != want {
		say("%d delivered and %d coalesced are %d events; there were %d", st.Delivered, st.Coalesced, got, want)
	}
	r.slow.mu.Lock()
	defer r.slow.mu.Unlock()
	if r.slow.odd != "" {
		say("slow handler: %s", r.slow.odd)
	}
	alive := 0
	for k, t := range r.stream.current {
		if t == nil {
			continue
		}
		alive++
		if got := r.slow.view[keyOf(k)]; got != t.version {
			say("slow handler: it has version %d of %s, want %d", got, t.key, t.version)
		}
	}
	if len(r.slow.view) != alive {
		say("slow handler: it knows %d objects; there are %d", len(r.slow.view), alive)
	}
	return out
}
