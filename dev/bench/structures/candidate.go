package structures

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Object is what the candidates hold. It never changes once it is stored.
type Object struct{ Key, Namespace, App, Version string }

// Candidate is a structure under test. One goroutine writes, any number read.
type Candidate interface {
	// Update stores new states of objects as one batch.
	Update(batch []*Object)
	// Get reads one object.
	Get(key string) *Object
	// By reads all objects under a value of an index.
	By(index, value string, yield func(*Object))
	// All reads everything.
	All(yield func(*Object))
}

// The indexes.
const (
	byNamespace = "namespace"
	byApp       = "app"
)

// pick gives the index that is asked for.
func pick[I any](index string, namespaces, apps I) I {
	if index == byApp {
		return apps
	}
	return namespaces
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
	{"hash + tidwall/btree, copied when a reader asked", newHashBTree},
	{"hash + persistent vectors, published per batch (our store, asked after each)", newOursPerBatch},
	{"hash + persistent vectors, cut when a reader asks (our store)", newOurs},
}

const (
	namespaces = 100
	apps       = 200
)

func app(i int) string { return "app-" + strconv.Itoa(i%apps) }

// objects makes n objects.
func objects(n int) []*Object {
	all := make([]*Object, n)
	for i := range all {
		ns := fmt.Sprintf("ns-%d", i%namespaces)
		all[i] = &Object{fmt.Sprintf("%s/pod-%07d", ns, i), ns, app(i), strconv.Itoa(i + 1)}
	}
	return all
}

// updates makes new states of objects without end, the same for every candidate. Each
// has a later version than all before it, and one in ten another app than its object had.
type updates struct {
	newest []*Object
	made   int
	random *rand.Rand
}

func updatesOf(objects []*Object) *updates {
	return &updates{slices.Clone(objects), len(objects), rand.New(rand.NewPCG(1, 2))}
}

func (u *updates) next() *Object {
	at := u.random.IntN(len(u.newest))
	old := u.newest[at]
	o := *old
	for u.made%10 == 0 && o.App == old.App {
		o.App = app(u.random.IntN(apps))
	}
	u.made++
	o.Version = strconv.Itoa(u.made)
	u.newest[at] = &o
	return &o
}

func (u *updates) some(n int) []*Object {
	all := make([]*Object, n)
	for i := range all {
		all[i] = u.next()
	}
	return all
}
