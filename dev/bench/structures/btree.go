package structures

import (
	"strings"
	"sync/atomic"

	"github.com/tidwall/btree"
)

// bTree is ordered trees that are copied lazily: after each batch readers get a copy.
type bTree struct {
	writing   trees
	published atomic.Pointer[trees]
}

func newBTree() Candidate {
	b := &bTree{writing: newTrees()}
	b.Update(nil)
	return b
}

func (b *bTree) Update(batch []*Object) {
	for _, o := range batch {
		b.writing.set(o)
	}
	b.published.Store(new(b.writing.copy()))
}

func (b *bTree) Get(key string) *Object {
	o, _ := b.published.Load().objects.Get(key)
	return o
}

func (b *bTree) By(index, value string, yield func(*Object)) {
	b.published.Load().by(index, value, yield)
}

func (b *bTree) All(yield func(*Object)) { b.published.Load().all(yield) }

type trees struct{ objects, namespaces, apps *btree.Map[string, *Object] }

func newTrees() trees {
	return trees{new(btree.Map[string, *Object]), new(btree.Map[string, *Object]), new(btree.Map[string, *Object])}
}

// copy gives trees that may be edited while others read these.
func (t *trees) copy() trees { return trees{t.objects.Copy(), t.namespaces.Copy(), t.apps.Copy()} }

// under is the key of an object under a value of an index.
func under(value, key string) string { return value + "\x00" + key }

func (t *trees) set(o *Object) {
	old, had := t.objects.Set(o.Key, o)
	if had && old.App != o.App {
		t.apps.Delete(under(old.App, o.Key))
	}
	t.namespaces.Set(under(o.Namespace, o.Key), o)
	t.apps.Set(under(o.App, o.Key), o)
}

func (t *trees) by(index, value string, yield func(*Object)) {
	first := under(value, "")
	pick(index, t.namespaces, t.apps).Ascend(first, func(k string, o *Object) bool {
		if !strings.HasPrefix(k, first) {
			return false
		}
		yield(o)
		return true
	})
}

func (t *trees) all(yield func(*Object)) {
	t.objects.Scan(func(_ string, o *Object) bool {
		yield(o)
		return true
	})
}
