// Package informer is one pipeline: a reflector reads a source into a queue, the
// queue's batches go into a store, and what changed there goes to the handlers.
// The goroutines that do so are described at Run.
//
//	pods, err := informer.New(src,
//		informer.Index("app", func(p *corev1.Pod) []string { return []string{p.Labels["app"]} }))
//	sub, err := pods.Subscribe(informer.Funcs[*corev1.Pod]{OnAdd: …, OnUpdate: …, OnDelete: …}, nil)
//	go pods.Run(ctx)
//	err = pods.WaitSynced(ctx)
//	for p := range pods.Snapshot().ByIndex("app", "mysql") { … }
//
// What it promises, each with a test of the same number:
//
//   - P1 Convergence: when the source is quiet, the store equals it.
//   - P2 Order per key: states of an object arrive in version order and never go
//     back within an epoch. A source whose history was set back starts a new epoch,
//     which Health and every event tell.
//   - P3 One order: all handlers see the same sequence or, coalesced, of each object a
//     subsequence.
//   - P4 Store first: when a handler runs, a snapshot is already at that change.
//   - P5 Initial delivery: what was there at the start arrives marked initial,
//     before the handler counts as synced.
//   - P6 No lost delete: whoever was announced is announced deleted, once; an object
//     that was replaced unseen by another of its name is a Delete and an Add.
//   - P7 Isolation: a slow, blocked or panicking handler hurts only itself.
//   - P9 Stop means stop: Stop waits for running callbacks or names them, and nothing else
//     is left running. The last state stays readable until Release, until the next
//     Run, or until nothing refers to the informer any more.
//   - P12 Nothing silent: a failing transform or index, an object that cannot be
//     decoded, a panicking handler, a failed request: each reaches OnProblem, is
//     counted and shows in Health; none empties or freezes the store.
//   - P13 Transform once per version of an object.
//   - P14 Staleness is data: Health tells state, version, age of the last word.
//   - P16 Bounded start: no list is ever held whole beside the store.
//
// Cached objects are shared by all: treat them as read-only.
package informer
