package structures

import "fmt"

// Object is what the candidates hold. It never changes once it is stored.
type Object struct {
	Key, Namespace, App string
	Version             int
}

// Candidate is a structure under test. One goroutine writes, any number read.
type Candidate interface {
	// Update stores new states of objects as one batch.
	Update(batch []*Object)
	// Get reads one object.
	Get(key string) *Object
	// InNamespace reads all objects of a namespace through an index.
	InNamespace(namespace string, yield func(*Object))
	// All reads everything.
	All(yield func(*Object))
}

// Candidates are all there are, by name, in the order of the table.
var Candidates = []struct {
	Name string
	New  func() Candidate
}{
	{"client-go's indexer", newClientGo},
	{"map + RWMutex, index buckets as slices", newLockedMap},
	{"sync.Map", newSyncMap},
	{"tidwall/btree, copied per batch", newBTree},
	{"go-immutable-radix", newRadix},
	{"persistent hash trie", newTrie},
	{"our store", newOurs},
}

const (
	namespaces = 100
	apps       = 200
)

// objects makes n objects.
func objects(n int) []*Object {
	all := make([]*Object, n)
	for i := range all {
		ns := fmt.Sprintf("ns-%d", i%namespaces)
		all[i] = &Object{Key: fmt.Sprintf("%s/pod-%07d", ns, i), Namespace: ns, App: fmt.Sprintf("app-%d", i%apps)}
	}
	return all
}

// updates makes n new states of the objects; every tenth has another app.
func updates(of []*Object, n int) []*Object {
	all := make([]*Object, n)
	for i := range all {
		o := *of[(i*7919)%len(of)]
		o.Version = i + 1
		if i%10 == 0 {
			o.App = fmt.Sprintf("app-%d", i%apps)
		}
		all[i] = &o
	}
	return all
}
