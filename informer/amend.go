package informer

import "github.com/mirador-k8s/mirador/store"

// Amend lets f change the store beside what the source says: a test puts objects
// there without a server, client-go's API lets anybody do it. f opens and ends its
// own batch and must not use the informer otherwise. Handlers are not told. Amend waits for a batch that is being
// stored, and not for the end of a list that is on its way: f may change objects beside it (see store.Writer.Begin),
// and the list has the last word.
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
