package structures

import (
	"sync/atomic"

	iradix "github.com/hashicorp/go-immutable-radix/v2"
)

// radix is immutable radix trees, one transaction for each batch.
type radix struct{ published atomic.Pointer[roots] }

type roots struct{ objects, namespaces, apps *iradix.Tree[*Object] }

func newRadix() Candidate {
	r := &radix{}
	r.published.Store(&roots{iradix.New[*Object](), iradix.New[*Object](), iradix.New[*Object]()})
	return r
}

func (r *radix) Update(batch []*Object) {
	now := r.published.Load()
	objects, namespaces, apps := now.objects.Txn(), now.namespaces.Txn(), now.apps.Txn()
	for _, o := range batch {
		old, had := objects.Insert([]byte(o.Key), o)
		if had && old.App != o.App {
			apps.Delete([]byte(under(old.App, o.Key)))
		}
		namespaces.Insert([]byte(under(o.Namespace, o.Key)), o)
		apps.Insert([]byte(under(o.App, o.Key)), o)
	}
	r.published.Store(&roots{objects.Commit(), namespaces.Commit(), apps.Commit()})
}

func (r *radix) Get(key string) *Object {
	o, _ := r.published.Load().objects.Get([]byte(key))
	return o
}

func (r *radix) By(index, value string, yield func(*Object)) {
	now := r.published.Load()
	pick(index, now.namespaces, now.apps).Root().WalkPrefix([]byte(under(value, "")), func(_ []byte, o *Object) bool {
		yield(o)
		return false
	})
}

func (r *radix) All(yield func(*Object)) {
	r.published.Load().objects.Root().Walk(func(_ []byte, o *Object) bool {
		yield(o)
		return false
	})
}
