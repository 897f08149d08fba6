package kube

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// modelled is a store, its expected content, and all states that it has had. Each version is used once, so a reader
// can tell whether an object was ever stored.
type modelled[T any] struct {
	t      testing.TB
	w      *store.Writer[T]
	states sync.Map // of state: the object
	now    map[object.Key]object.Version

	last              int // the version given out last
	replaced, deleted int
	bare              uint64 // puts without bytes, which may be kept live

	news []chan struct{} // a batch has ended, for each reader
	read atomic.Int64    // states that readers have compared

	before  *store.Snapshot[T] // of the open batch; nil: none is open
	touched map[object.Key]bool
}

type state struct {
	key     object.Key
	version object.Version
}

func newModelled[T any](t testing.TB, opts store.Options[T]) *modelled[T] {
	t.Helper()
	w, err := store.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return &modelled[T]{t: t, w: w, now: map[object.Key]object.Version{}, touched: map[object.Key]bool{}}
}

func (m *modelled[T]) next() object.Version {
	m.last++
	return object.Version(fmt.Sprint(m.last))
}

func (m *modelled[T]) begin(key object.Key) {
	if m.before == nil {
		m.before = m.w.Reader().Snapshot()
		m.w.Begin()
	}
	m.touched[key] = true
}

// put stores an item, of which want is another copy.
func (m *modelled[T]) put(item object.Item[T], want T) {
	m.begin(item.Key)
	if _, had := m.now[item.Key]; had {
		m.replaced++
	}
	if item.Encoded == nil {
		m.bare++
	}
	m.now[item.Key] = item.Version
	m.states.Store(state{item.Key, item.Version}, want)
	m.w.Put(item)
}

func (m *modelled[T]) delete(key object.Key) {
	if _, had := m.now[key]; had {
		m.deleted++
	}
	m.begin(key)
	m.w.Delete(key, m.next())
	delete(m.now, key)
}

// commit ends the batch and compares the objects that it changed, before and after.
func (m *modelled[T]) commit() {
	m.t.Helper()
	if m.before == nil {
		return
	}
	m.w.Commit()
	for _, news := range m.news {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	for key := range m.touched {
		if e, had := m.before.Entry(key); had {
			m.compare(e)
		}
		e, has := m.w.Reader().Entry(key)
		if version, want := m.now[key]; has != want || has && e.Version != version {
			m.t.Errorf("%s: stored is %v, wanted %v at %q", key, has, want, version)
		} else if has {
			m.compare(e)
		}
	}
	m.before = nil
	clear(m.touched)
}

// compare checks that an entry has the object that was stored at its version.
func (m *modelled[T]) compare(e *store.Entry[T]) bool {
	got := e.Object()
	want, stored := m.states.Load(state{e.Key, e.Version})
	if stored && reflect.DeepEqual(any(got), want) {
		return true
	}
	m.t.Errorf("%s at %s came back as %+v, want %+v", e.Key, e.Version, got, want)
	return false
}

// readAlong compares the content after each batch on two goroutines, while the next batch is written, until the
// returned function is called and both have seen the last state.
func (m *modelled[T]) readAlong() (stop func()) {
	var readers sync.WaitGroup
	for range 2 {
		news := make(chan struct{}, 1)
		m.news = append(m.news, news)
		readers.Go(func() {
			for more := true; ; _, more = <-news {
				for e := range m.w.Reader().Snapshot().Entries() {
					if !m.compare(e) {
						return
					}
					m.read.Add(1)
				}
				if !more {
					return
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		for _, news := range m.news {
			close(news)
		}
		m.news = nil
		readers.Wait()
	})
}

// end compares all remaining objects, and checks that no more than necessary are stored live.
func (m *modelled[T]) end() {
	m.t.Helper()
	m.commit()
	snap := m.w.Reader().Snapshot()
	if snap.Len() != len(m.now) {
		m.t.Errorf("%d objects, want %d", snap.Len(), len(m.now))
	}
	for e := range snap.Entries() {
		if m.now[e.Key] != e.Version {
			m.t.Errorf("%s is at %s, want %q", e.Key, e.Version, m.now[e.Key])
		}
		m.compare(e)
	}
	if live := m.w.Reader().Layout().KeptLive; live > m.bare {
		m.t.Errorf("%d objects were kept live, and %d came without their bytes", live, m.bare)
	}
}
