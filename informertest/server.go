package informertest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/object"
)

// Server is an in-memory API server. It is an http.Handler; Serve and Pipe put it behind a rest.Config. All methods
// may be called from any goroutine. It starts no goroutine.
type Server struct {
	bookmarkPeriod time.Duration

	mu        sync.Mutex
	resources map[schema.GroupVersionResource]*resource
	history   history
	// uids and names count the UIDs and names that the server has generated; unlike versions they never go back.
	uids, names uint64
	faults      []*injected
	requests    []*Request
	watches     map[*watch]struct{}
	stalled     bool
	// wake is closed and replaced whenever open watches may have something to send.
	wake chan struct{}
	// cut is closed and replaced to break all open watches.
	cut chan struct{}
}

// Option changes a Server from its default.
type Option func(*Server)

// BookmarkEvery makes the server send bookmarks to each open watch that allows them, with the timing of an API server
// whose period is one minute: each a little late, and one or two more shortly before the watch ends. Without this
// option bookmarks are sent only when Server.Bookmark is called.
func BookmarkEvery(period time.Duration) Option {
	return func(s *Server) { s.bookmarkPeriod = period }
}

// NewServer returns an empty server that serves the usual built-in resources. A server used inside a synctest bubble
// must be created inside it.
func NewServer(opts ...Option) *Server {
	s := &Server{
		resources: map[schema.GroupVersionResource]*resource{},
		history:   history{version: 1},
		watches:   map[*watch]struct{}{},
		wake:      make(chan struct{}),
		cut:       make(chan struct{}),
	}
	s.registerBuiltins()
	for _, o := range opts {
		o(s)
	}
	return s
}

// Version returns the version of the last write.
func (s *Server) Version() object.Version {
	s.mu.Lock()
	defer s.mu.Unlock()
	return formatVersion(s.history.version)
}

// Get returns the current state of an object. The caller owns the result.
func (s *Server) Get(gvr schema.GroupVersionResource, key object.Key) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	r := s.resources[gvr]
	if r == nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("getting %s %q: the resource is not served; register it first", gvr.Resource, key)
	}
	e := s.history.at(r, key, s.history.version)
	s.mu.Unlock()
	if e == nil {
		return nil, notFound(r, key.Name())
	}
	return e.unstructured()
}

// List returns all objects of a resource in the order of their keys.
func (s *Server) List(gvr schema.GroupVersionResource) ([]*unstructured.Unstructured, error) {
	entries, err := s.current(gvr)
	if err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, 0, len(entries))
	for _, e := range entries {
		u, err := e.unstructured()
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}

// Versions returns the version of every object of a resource: what a mirror must hold once it has caught up. For a
// resource that is not served the result is empty.
func (s *Server) Versions(gvr schema.GroupVersionResource) map[object.Key]object.Version {
	entries, _ := s.current(gvr)
	out := make(map[object.Key]object.Version, len(entries))
	for _, e := range entries {
		out[e.key] = formatVersion(e.version)
	}
	return out
}

func (s *Server) current(gvr schema.GroupVersionResource) ([]*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.resources[gvr]
	if r == nil {
		return nil, fmt.Errorf("listing %s: the resource is not served; register it first", gvr)
	}
	return s.history.list(r, s.history.version), nil
}

// Bookmark sends a bookmark to the open watches of a resource that allow them.
func (s *Server) Bookmark(gvr schema.GroupVersionResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.resources[gvr]; r != nil {
		r.bookmarks++
		s.wakeWatches()
	}
}

// Compact drops the history before a version: a watch, a list or a continue token that needs an older version gets an
// error that it has expired. Open watches are not affected.
func (s *Server) Compact(version object.Version) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.past(version)
	if err != nil {
		return fmt.Errorf("compacting at version %q: %w", version, err)
	}
	keep := uint64(math.MaxUint64)
	for w := range s.watches {
		keep = min(keep, w.cursor)
	}
	s.history.compact(slices.Collect(maps.Values(s.resources)), v, keep)
	return nil
}

// Restore goes back to an older version, as an etcd restored from a backup does: objects and the version counter are
// as they were, later writes reuse the version numbers, and open watches are cut.
func (s *Server) Restore(version object.Version) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.past(version)
	if err != nil {
		return fmt.Errorf("restoring version %q: %w", version, err)
	}
	s.history.restore(slices.Collect(maps.Values(s.resources)), v)
	s.cutWatches()
	return nil
}

// past parses a version that the history must still contain. The lock is held.
func (s *Server) past(version object.Version) (uint64, error) {
	v, err := strconv.ParseUint(string(version), 10, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("not a version: %w", err)
	case v < s.history.compacted:
		return 0, fmt.Errorf("the history before %d was compacted", s.history.compacted)
	case v > s.history.version:
		return 0, fmt.Errorf("the newest version is %d", s.history.version)
	}
	return v, nil
}

// CutWatches breaks the connections of all open watches.
func (s *Server) CutWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutWatches()
}

// Stall makes every watch, open or opened later, stay open and send nothing, even past its timeout, until Resume is
// called.
func (s *Server) Stall() { s.setStalled(true) }

// Resume ends Stall: the watches send what has accumulated.
func (s *Server) Resume() { s.setStalled(false) }

func (s *Server) setStalled(stalled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = stalled
	s.wakeWatches()
}

// OpenWatches returns how many watches are open.
func (s *Server) OpenWatches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watches)
}

func (s *Server) wakeWatches() {
	close(s.wake)
	s.wake = make(chan struct{})
}

func (s *Server) cutWatches() {
	close(s.cut)
	s.cut = make(chan struct{})
}

func formatVersion(v uint64) object.Version { return object.Version(strconv.FormatUint(v, 10)) }
