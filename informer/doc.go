// Package informer is one pipeline: a reflector reads a source into a queue, batches from the queue are written to a
// store, and the changes are delivered to handlers. Informer.Run describes the goroutines that do this.
//
//	pods, err := informer.New(src, &informer.Options[*corev1.Pod]{Indexes: informer.Indexes[*corev1.Pod]{
//		"app": func(p *corev1.Pod) ([]string, error) { return []string{p.Labels["app"]}, nil },
//	}})
//	sub, err := pods.Subscribe(informer.Funcs[*corev1.Pod]{OnAdd: …, OnUpdate: …, OnDelete: …}, nil)
//	go pods.Run(ctx)
//	err = pods.WaitSynced(ctx)
//	for p := range pods.Snapshot().ByIndex("app", "mysql") { … }
//
// What it promises, each with a test of the same number:
//
//   - P1 Convergence: when the source is quiet, the store equals it.
//   - P2 Order per key: states of an object arrive in version order and never go
//     back within an epoch. When the source's history is reset, a new epoch
//     begins; Health and every event have its number.
//   - P3 One order: all handlers see the same sequence or, if events were coalesced, a
//     subsequence for each object.
//   - P4 Store first: when a handler runs, a snapshot already contains that change.
//   - P5 Initial delivery: objects that exist at the start are delivered as initial,
//     before the handler counts as synced.
//   - P6 No lost delete: the deletion of every delivered object is delivered, once. An object
//     that was replaced by another one with the same name is deleted and added.
//   - P7 Isolation: a slow, blocked or panicking handler affects no other handler.
//   - P9 Complete stop: Stop waits for running callbacks or names them, and nothing else
//     is left running. The last state stays readable until Release, the next Run, or
//     until the informer is not referenced any more.
//   - P12 Reported failures: a failing transform or index, an object that cannot be
//     decoded, a panicking handler and a failed request are reported to OnProblem and
//     counted in Health; none of them empties or freezes the store.
//   - P13 Each version of an object is transformed once.
//   - P14 Readable staleness: Health has the state, the version and the last-event age.
//   - P16 Bounded start: a list is never held in memory in addition to the store.
//
// Stored objects are shared by all readers: treat them as read-only.
package informer
