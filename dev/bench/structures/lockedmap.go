package structures

import "sync"

// lockedMap is a map of cells under a lock; an index bucket is a slice of cells.
type lockedMap struct {
	mu         sync.RWMutex
	cells      map[string]*cell
	namespaces map[string]*bucket
	apps       map[string]*bucket
}

type cell struct {
	object             *Object
	inNamespace, inApp *bucket
	atNamespace, atApp int // places in those buckets
}

type bucket struct{ cells []*cell }

func newLockedMap() Candidate {
	return &lockedMap{cells: map[string]*cell{}, namespaces: map[string]*bucket{}, apps: map[string]*bucket{}}
}

func (m *lockedMap) Update(batch []*Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range batch {
		c := m.cells[o.Key]
		if c == nil {
			c = &cell{inNamespace: get(m.namespaces, o.Namespace)}
			c.atNamespace = c.inNamespace.add(c)
			c.inApp = get(m.apps, o.App)
			c.atApp = c.inApp.add(c)
			m.cells[o.Key] = c
		} else if c.object.App != o.App {
			c.inApp.remove(c.atApp)
			c.inApp = get(m.apps, o.App)
			c.atApp = c.inApp.add(c)
		}
		c.object = o
	}
}

func get(in map[string]*bucket, value string) *bucket {
	b := in[value]
	if b == nil {
		b = &bucket{}
		in[value] = b
	}
	return b
}

func (b *bucket) add(c *cell) int {
	b.cells = append(b.cells, c)
	return len(b.cells) - 1
}

// remove fills the hole with the last cell. It serves the app buckets, the only ones
// that objects leave.
func (b *bucket) remove(at int) {
	last := len(b.cells) - 1
	b.cells[at] = b.cells[last]
	b.cells[at].atApp = at
	b.cells[last] = nil
	b.cells = b.cells[:last]
}

func (m *lockedMap) Get(key string) *Object {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if c := m.cells[key]; c != nil {
		return c.object
	}
	return nil
}

func (m *lockedMap) By(index, value string, yield func(*Object)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if b := pick(index, m.namespaces, m.apps)[value]; b != nil {
		for _, c := range b.cells {
			yield(c.object)
		}
	}
}

func (m *lockedMap) All(yield func(*Object)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, c := range m.cells {
		yield(c.object)
	}
}
