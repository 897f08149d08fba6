package structures

import (
	"sync/atomic"

	"github.com/tidwall/btree"
)

// bTree is ordered trees that are copied lazily: after each batch readers get a copy.
type bTree struct {
	writing   trees
	published atomic.Pointer[trees]
}

type trees struct{ objects, namespaces, apps *btree.Map[string, *Object] }

func newBTree() Candidate {
	b := &bTree{writing: trees{new(btree.Map[string, *Object]), new(btree.Map[string, *Object]), new(btree.Map[string, *Object])}}
	b.publish()
	return b
}

// under is the key of an object under a value of an index.
func under(value, key string) string { return value + "\x00" + key }

func (b *bTree) Update(batch []*Object) {
	w := &b.writing
	for _, o := range batch {
		old, had := w.objects.Set(o.Key, o)
		if had && old.App != o.App {
			w.apps.Delete(under(old.App, o.Key))
		}
		w.namespaces.Set(under(o.Namespace, o.Key), o)
		w.apps.Set(under(o.App, o.Key), o)
	}
	b.publish()
}

func (b *bTree) publish() {
	w := &b.writing
	b.published.Store(&trees{w.objects.Copy(), w.namespaces.Copy(), w.apps.Copy()})
}

func (b *bTree) Get(key string) *Object {
	o, _ := b.published.Load().objects.Get(key)
	return o
}

func (b *bTree) InNamespace(namespace string, yield func(*Object)) {
	b.published.Load().namespaces.Ascend(under(namespace, ""), func(_ string, o *Object) bool {
		if o.Namespace != namespace {
			return false
		}
		yield(o)
		return true
	})
}

func (b *bTree) All(yield func(*Object)) {
	b.published.Load().objects.Scan(func(_ string, o *Object) bool {
		yield(o)
		return true
	})
}
