package fakeapi

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// change is one version of one pod.
type change struct {
	version int64
	time    time.Time
	before  *Pod // nil if it did not exist
	after   Pod
	deleted bool
}

// cursor is a position in a list: the next of the initial pods, and how many of the later ones before it were already
// returned.
type cursor struct{ cluster, index, later int }

func (s *Server) now() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

func (s *Server) forgotten() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.oldest
}

func (s *Server) since(version int64) []change {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, _ := slices.BinarySearchFunc(s.log, version+1, func(c change, v int64) int { return int(c.version - v) })
	return s.log[at:]
}

// Put adds or changes a pod. Its version is set.
func (s *Server) Put(p Pod) { s.record(p, false, time.Now()) }

// Delete deletes a pod.
func (s *Server) Delete(p Pod) { s.record(p, true, time.Now()) }

// PutAt adds or changes a pod at a time of the past, after all other changes.
func (s *Server) PutAt(t time.Time, p Pod) { s.record(p, false, t) }

// DeleteAt deletes a pod at a time of the past, after all other changes.
func (s *Server) DeleteAt(t time.Time, p Pod) { s.record(p, true, t) }

func (s *Server) record(p Pod, deleted bool, at time.Time) {
	before, found := s.Pod(p.Cluster, p.Namespace, p.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	p.Version = s.version
	c := change{version: s.version, time: at, after: p, deleted: deleted}
	if found {
		c.before = &before
	}
	s.log = append(s.log, c)
	close(s.moved)
	s.moved = make(chan struct{})
}

// At returns the pod at a position of a cluster's initial list.
func (s *Server) At(cluster string, i int) Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clusters[cluster]
	return c.pods[i].pod(cluster, i)
}

// Pod returns the current state of a pod.
func (s *Server) Pod(cluster, namespace, name string) (Pod, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := Pod{Cluster: cluster, Namespace: namespace, Name: name}.key()
	for _, c := range slices.Backward(s.log) {
		if c.after.key() == key {
			return c.after, !c.deleted
		}
	}
	i, found := s.clusters[cluster].place(namespace, name)
	if !found {
		return Pod{}, false
	}
	return s.clusters[cluster].pods[i].pod(cluster, i), true
}

// place returns the position of a pod among the initial ones.
func (c *cluster) place(namespace, name string) (int, bool) {
	return slices.BinarySearchFunc(c.pods, namespace+"/"+name,
		func(b base, k string) int { return strings.Compare(b.namespace+"/"+b.name, k) })
}

// changes returns the last states up to a version, by key.
func (s *Server) changes(at int64) map[string]change {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := map[string]change{}
	for _, c := range s.log {
		if c.version <= at {
			last[c.after.key()] = c
		}
	}
	return last
}

// objects yields what a request can see at a version, in order, from a position on. Only pods have a history.
func (s *Server) objects(q request, from cursor, at int64) iter.Seq2[Pod, cursor] {
	return func(yield func(Pod, cursor) bool) {
		changed := s.changes(at)
		for n := from.cluster; n < len(q.clusters); n++ {
			c, start := q.clusters[n], cursor{cluster: n}
			if n == from.cluster {
				start = from
			}
			if q.res.name != "pods" {
				if !others(c, q.res, start, yield) {
					return
				}
				continue
			}
			if !merged(c, start, changed, yield) {
				return
			}
		}
	}
}

func others(c *cluster, r *resource, start cursor, yield func(Pod, cursor) bool) bool {
	for i := start.index; i < r.objects; i++ {
		p := base{"team-00", r.nameAt(i)}.pod(c.name, i)
		if !r.namespaced {
			p.Namespace = ""
		}
		if !yield(p, cursor{start.cluster, i, 0}) {
			return false
		}
	}
	return true
}

// nameAt returns the name of an object of a resource without history. Namespaces are those of the pods.
func (r *resource) nameAt(i int) string {
	if r.name == "namespaces" {
		return fmt.Sprintf("team-%02d", i)
	}
	return r.name + "-" + string(rune('a'+i/676%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i%26))
}

// merged yields the initial pods in their current state, with the later ones between them.
func merged(c *cluster, start cursor, changed map[string]change, yield func(Pod, cursor) bool) bool {
	later := map[int][]Pod{} // by the position before which they come
	for _, ch := range changed {
		if i, found := c.place(ch.after.Namespace, ch.after.Name); ch.after.Cluster == c.name && !found && !ch.deleted {
			later[i] = append(later[i], ch.after)
		}
	}
	for i := start.index; i <= len(c.pods); i++ {
		between := later[i]
		slices.SortFunc(between, func(a, b Pod) int { return strings.Compare(a.key(), b.key()) })
		for n, p := range between {
			if i == start.index && n < start.later {
				continue
			}
			if !yield(p, cursor{start.cluster, i, n}) {
				return false
			}
		}
		if i == len(c.pods) {
			break
		}
		p := c.pods[i].pod(c.name, i)
		if len(changed) > 0 {
			if ch, ok := changed[p.key()]; ok && ch.deleted {
				continue
			} else if ok {
				p = ch.after
			}
		}
		if !yield(p, cursor{start.cluster, i, len(between)}) {
			return false
		}
	}
	return true
}

func (s *Server) count(q request, at int64) (n int) {
	for _, c := range q.clusters {
		if q.res.name != "pods" {
			n += q.res.objects
			continue
		}
		n += len(c.pods)
		for _, ch := range s.changes(at) {
			_, found := c.place(ch.after.Namespace, ch.after.Name)
			switch {
			case ch.after.Cluster != c.name:
			case found && ch.deleted:
				n--
			case !found && !ch.deleted:
				n++
			}
		}
	}
	return n
}
