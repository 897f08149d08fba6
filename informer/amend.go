package informer

import "github.com/mirador-k8s/mirador/store"

// Amend lets f change the store beside what the source says: a test puts objects
// there without a server, client-go's API lets anybody do it. f opens and ends its
// own batch and must not use the informer otherwise. Handlers are not told. If a
// list is on its way into the store, Amend waits for its end.
func (i *Informer[T]) Amend(f func(w *store.Writer[T])) {
	i.beginWrite()
	defer i.endWrite()
	for i.batch.replacing {
		if i.listEnd == nil {
			i.listEnd = make(chan struct{})
		}
		end := i.listEnd
		i.endWrite()
		<-end
		i.beginWrite()
	}
	f(i.writer)
	i.batch.seq = i.reader.Snapshot().Seq()
	i.mu.Lock()
	fan := i.fan
	i.mu.Unlock()
	fan.Publish(i.batch.seq, nil) // handlers wait for every number
}

// listOver wakes those who wait for the end of a list.
func (i *Informer[T]) listOver() {
	i.batch.replacing = false
	if i.listEnd != nil {
		close(i.listEnd)
		i.listEnd = nil
	}
}
