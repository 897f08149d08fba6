package informer

import "github.com/mirador-k8s/mirador/store"

// Amend lets f change the store independently of the source: tests add objects without a server, and client-go's API
// has methods for it. f opens and commits its own batch and must not call the informer. No events are delivered. Amend
// waits for a batch that is being written, but not for the end of an open list: f may change objects meanwhile (see
// store.Writer.Begin), and the list then replaces them.
func (i *Informer[T]) Amend(f func(w *store.Writer[T])) {
	i.beginWrite()
	defer i.endWrite()
	f(i.writer)
	i.batch.seq = i.reader.Snapshot().Seq()
	i.mu.Lock()
	fan := i.fan
	i.mu.Unlock()
	fan.Publish(i.batch.seq, nil) // handlers wait for every number
}
