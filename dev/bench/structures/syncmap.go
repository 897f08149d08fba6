package structures

import (
	"sync"
	"sync/atomic"
)

// syncMap is maps that readers need no lock for. Its readers see single objects, not
// one moment.
type syncMap struct {
	cells, namespaces, apps sync.Map // key -> *atomic.Pointer; value -> *sync.Map of key -> cell
}

func newSyncMap() Candidate { return &syncMap{} }

func (m *syncMap) Update(batch []*Object) {
	for _, o := range batch {
		if have, ok := m.cells.Load(o.Key); ok {
			c := have.(*atomic.Pointer[Object])
			if old := c.Swap(o); old.App != o.App {
				within(&m.apps, old.App).Delete(o.Key)
				within(&m.apps, o.App).Store(o.Key, c)
			}
			continue
		}
		c := &atomic.Pointer[Object]{}
		c.Store(o)
		m.cells.Store(o.Key, c)
		within(&m.namespaces, o.Namespace).Store(o.Key, c)
		within(&m.apps, o.App).Store(o.Key, c)
	}
}

func within(index *sync.Map, value string) *sync.Map {
	if have, ok := index.Load(value); ok {
		return have.(*sync.Map)
	}
	b := &sync.Map{}
	index.Store(value, b)
	return b
}

func (m *syncMap) Get(key string) *Object {
	if c, ok := m.cells.Load(key); ok {
		return c.(*atomic.Pointer[Object]).Load()
	}
	return nil
}

func (m *syncMap) By(index, value string, yield func(*Object)) {
	if b, ok := pick(index, &m.namespaces, &m.apps).Load(value); ok {
		each(b.(*sync.Map), yield)
	}
}

func (m *syncMap) All(yield func(*Object)) { each(&m.cells, yield) }

func each(m *sync.Map, yield func(*Object)) {
	m.Range(func(_, c any) bool {
		yield(c.(*atomic.Pointer[Object]).Load())
		return true
	})
}
