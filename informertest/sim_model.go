package informertest

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mirador-k8s/mirador/object"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// The labels of a simulated pod: the number of the write that made it, its value in
// the index, and what the transform does with it.
const (
	labelWrite     = "w"
	labelIndex     = "x"
	labelTransform = "t"
)

// podState is one written state of an object, or its deletion.
type podState struct {
	key     object.Key
	write   int
	uid     string
	version uint64
	gone    bool
	// bad states cannot be stored: they do not decode, or the transform fails.
	bad   bool
	pod   *corev1.Pod
	entry *entry
}

// branch is one history. A restored etcd starts another, which shares its beginning.
type branch struct {
	states map[object.Key][]*podState
}

// at returns the state of a key at a version, or nil.
func (b *branch) at(key object.Key, version uint64) *podState {
	states := b.states[key]
	n := sort.Search(len(states), func(i int) bool { return states[i].version > version })
	if n == 0 || states[n-1].gone {
		return nil
	}
	return states[n-1]
}

// model records everything that was written, and so what an informer may know.
type model struct {
	keys     []object.Key
	branches []*branch
	writes   []*podState // by number
	uids     int
	newest   uint64 // the highest version there ever was
}

func newModel(keys int) *model {
	m := &model{branches: []*branch{{states: map[object.Key][]*podState{}}}}
	for i := range keys {
		m.keys = append(m.keys, object.NewKey([]string{"blue", "green", "red"}[i%3], fmt.Sprintf("pod-%02d", i)))
	}
	slices.Sort(m.keys)
	return m
}

func (m *model) epoch() int   { return len(m.branches) - 1 }
func (m *model) now() *branch { return m.branches[len(m.branches)-1] }

func (m *model) current(key object.Key) *podState {
	states := m.now().states[key]
	if len(states) == 0 || states[len(states)-1].gone {
		return nil
	}
	return states[len(states)-1]
}

// live returns the keys that have an object.
func (m *model) live() []object.Key {
	var out []object.Key
	for _, k := range m.keys {
		if m.current(k) != nil {
			out = append(out, k)
		}
	}
	return out
}

// add records a state.
func (m *model) add(st *podState) {
	b := m.now()
	b.states[st.key] = append(b.states[st.key], st)
	m.newest = max(m.newest, st.version)
}

// restore starts a history that continues from a version.
func (m *model) restore(version uint64) {
	next := &branch{states: map[object.Key][]*podState{}}
	for k, states := range m.now().states {
		n := sort.Search(len(states), func(i int) bool { return states[i].version > version })
		next.states[k] = slices.Clone(states[:n])
	}
	m.branches = append(m.branches, next)
}

// state returns the recorded state that a pod shows.
func (m *model) state(p *corev1.Pod) *podState {
	if p == nil {
		return nil
	}
	n, err := strconv.Atoi(p.Labels[labelWrite])
	if err != nil || n < 0 || n >= len(m.writes) {
		return nil
	}
	return m.writes[n]
}

// flaw is what is wrong with a written object.
type flaw struct {
	index, transform string // "fail" or "panic"
	corrupt          bool
}

// put writes a state of an object, and creates the object if it does not exist.
func (s *simulation) put(key object.Key, f flaw) {
	m := s.model
	old := m.current(key)
	st := &podState{key: key, write: len(m.writes), version: s.server.history.next(),
		bad: f.corrupt || f.transform != "" && s.plan.transform}
	var oldEntry *entry
	if old != nil {
		st.uid, oldEntry = old.uid, old.entry
	} else {
		m.uids++
		st.uid = fmt.Sprintf("uid-%d", m.uids)
	}
	labels := map[string]string{labelWrite: strconv.Itoa(st.write), labelIndex: string(rune('a' + st.write%3))}
	if f.index != "" {
		labels[labelIndex] = f.index
	}
	if f.transform != "" {
		labels[labelTransform] = f.transform
	}
	ns, name := key.Split()
	st.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(st.uid), Labels: labels},
		Spec: corev1.PodSpec{NodeName: "node-" + string(rune('0'+st.write%2))}}
	st.entry = s.encode(st.pod, st.version, f.corrupt)
	m.writes = append(m.writes, st)
	m.add(st)
	s.server.history.put(s.res, oldEntry, st.entry)
	s.note("write %s=%d version %d uid %s %v", key, st.write, st.version, st.uid, f)
}

// drop deletes an object.
func (s *simulation) drop(key object.Key) {
	old := s.model.current(key)
	version := s.server.history.next()
	st := &podState{key: key, write: old.write, uid: old.uid, version: version, gone: true}
	s.model.add(st)
	s.server.history.removeAs(s.res, old.entry, s.encode(old.pod, version, old.entry.corrupt))
	s.note("delete %s version %d", key, version)
}

// encode makes the entry that the server stores. The server's own path decodes and encodes an object several times,
// which is too slow for a hundred thousand seeds.
func (s *simulation) encode(p *corev1.Pod, version uint64, corrupt bool) *entry {
	p = p.DeepCopy()
	p.ResourceVersion = strconv.FormatUint(version, 10)
	e, err := newEntry(s.res, p)
	if err != nil {
		panic(fmt.Sprintf("informertest: %v", err))
	}
	b := marshal(p)
	e.protobuf.Store(&b)
	e.corrupt = corrupt
	return e
}

// writeElsewhere writes to another resource: the version increases, and a watch of pods has only bookmarks to send.
func (s *simulation) writeElsewhere() {
	h := &s.server.history
	was := s.elsewhere
	e := &entry{resource: was.resource, key: was.key, namespace: was.namespace, name: was.name,
		body: was.body, version: h.next()}
	h.put(e.resource, nil, e)
	s.model.newest = max(s.model.newest, e.version)
	s.note("another resource is written: version %d", e.version)
}

func newElsewhere(r *resource) *entry {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "elsewhere", ResourceVersion: "1",
		CreationTimestamp: metav1.NewTime(time.Unix(0, 0))}}
	e, err := newEntry(r, cm)
	if err != nil {
		panic(fmt.Sprintf("informertest: %v", err))
	}
	return e
}

// versionIn returns the version of a pod, or "" if it is nil.
func versionIn(p *corev1.Pod) object.Version {
	if p == nil {
		return ""
	}
	return object.Version(p.ResourceVersion)
}
