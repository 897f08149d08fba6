package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// The documents of a cluster on disk.
const (
	discoveryDocument = "discovery"
	versionDocument   = "version"
	openAPIPrefix     = "openapi " // and the path
)

// savedCluster is what the disk has of a cluster at the start. A nil one has nothing.
type savedCluster struct {
	name      string
	disk      *disk.Disk
	uid       string
	groups    []group
	version   []byte
	documents map[string]*document
	resources map[schema.GroupVersionResource]*disk.StoredResource
	newest    object.Version // of all resources
	loaded    time.Time

	historyAge time.Duration // how long changes may be resumed from
}

// loadSaved reads what the disk has of a cluster. It returns nil if that is nothing.
func loadSaved(d *disk.Disk, name string) (*savedCluster, error) {
	stored, err := d.Clusters()
	if err != nil {
		return nil, err
	}
	s := &savedCluster{name: name, disk: d, loaded: time.Now(),
		resources: map[schema.GroupVersionResource]*disk.StoredResource{}}
	for _, c := range stored {
		if c.Name == name {
			s.uid = c.UID
		}
	}
	if s.uid == "" {
		return nil, nil
	}
	resources, err := d.Resources(name)
	if err != nil {
		return nil, err
	}
	for i := range resources {
		r := &resources[i]
		if r.Version == "" {
			continue // it was never complete
		}
		gvr := schema.GroupVersionResource{Group: r.Group, Version: r.Resource.Version, Resource: r.Resource.Resource}
		s.resources[gvr] = r
		if gvr.Resource != "events" && (s.newest == "" || s.newest.Before(r.Version)) {
			s.newest = r.Version // events often have an etcd of their own, which counts versions for itself
		}
	}
	if err := s.loadDocuments(); err != nil {
		return nil, err
	}
	if len(s.groups) == 0 {
		return nil, nil // it was never discovered
	}
	return s, nil
}

func (s *savedCluster) loadDocuments() error {
	names, err := s.disk.Documents(s.name)
	if err != nil {
		return err
	}
	s.documents = make(map[string]*document, len(names))
	for _, name := range names {
		data, err := s.disk.Document(s.name, name)
		if err != nil {
			return err
		}
		path, isOpenAPI := strings.CutPrefix(name, openAPIPrefix)
		switch {
		case name == discoveryDocument:
			if s.groups, err = decodeGroups(data); err != nil {
				return fmt.Errorf("read the discovery of cluster %q on disk: %w", s.name, err)
			}
		case name == versionDocument:
			s.version = data
		case isOpenAPI:
			if s.documents[path], err = decodeDocument(data); err != nil {
				return fmt.Errorf("read %s of cluster %q on disk: %w", path, s.name, err)
			}
		}
	}
	return nil
}

// newestVersion returns the newest version of the cluster's resources, or "".
func (s *savedCluster) newestVersion() object.Version {
	if s == nil {
		return ""
	}
	return s.newest
}

// errReplaced reports a state that was replaced between two reads.
var errReplaced = errors.New("the state on disk has changed")

// take returns the state of a resource for one informer, or nil. fingerprint stands for the rules by which its objects
// are redacted: a state with other rules is not used.
func (s *savedCluster) take(gvr schema.GroupVersionResource, fingerprint string) *restoredState {
	if s == nil {
		return nil
	}
	r := s.resources[gvr]
	delete(s.resources, gvr)
	if r == nil || r.Fingerprint != fingerprint {
		return nil
	}
	read := newReading()
	return &restoredState{read,
		&informer.State[*Object]{Version: r.Version, LastEvent: r.Reached, Packed: s.entries(r, read)},
		&restoredChanges{disk: s.disk, id: r.Resource, upTo: r.Version, began: s.loaded,
			until: time.Now().Add(s.historyAge)}}
}

// restoredState is a state from disk, and the changes that led to it.
type restoredState struct {
	reading *reading
	state   *informer.State[*Object]
	changes *restoredChanges
}

// entries reads the objects of a resource. They are read when the informer runs, each in its goroutine.
func (s *savedCluster) entries(r *disk.StoredResource, read *reading) iter.Seq2[store.PackedEntry, error] {
	return func(yield func(store.PackedEntry, error) bool) {
		failed := true
		defer func() { read.end(failed) }()
		state, err := s.disk.Restore(r.Resource)
		if err == nil && state.Version != r.Version {
			state.Close()
			err = errReplaced
		}
		if err != nil {
			yield(store.PackedEntry{}, err)
			return
		}
		for o, err := range state.States() {
			if !yield(entryOf(&o), err) {
				return
			}
		}
		failed = false
	}
}

// entryOf returns a stored object for a store with the indexes of a Resource.
func entryOf(o *disk.State) store.PackedEntry {
	e := store.PackedEntry{Key: o.Key, Version: o.Version, UID: o.UID, Size: o.Size, Object: o.Object}
	if !o.LabelsUnknown {
		e.Indexed = []store.IndexValues{{Index: labelIndex, Values: o.Labels}, {Index: NamespaceIndex}}
	}
	return e
}

// savedGroup is a group as it is kept on disk.
type savedGroup struct {
	Name     string         `json:"name"`
	Versions []savedVersion `json:"versions"`
}

type savedVersion struct {
	Name      string               `json:"name"`
	Resources []metav1.APIResource `json:"resources"`
	Unknown   bool                 `json:"unknown,omitempty"`
}

func encodeGroups(groups []group) ([]byte, error) {
	out := make([]savedGroup, len(groups))
	for i, g := range groups {
		out[i].Name = g.name
		for _, v := range g.versions {
			out[i].Versions = append(out[i].Versions, savedVersion{v.name, v.resources, v.err != nil})
		}
	}
	return json.Marshal(out)
}

func decodeGroups(data []byte) ([]group, error) {
	var in []savedGroup
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, err
	}
	out := make([]group, len(in))
	for i, g := range in {
		out[i].name = g.Name
		for _, v := range g.Versions {
			gv := groupVersion{name: v.Name, resources: v.Resources}
			if v.Unknown {
				gv.err = errStale
			}
			out[i].versions = append(out[i].versions, gv)
		}
	}
	return out, nil
}

// savedDocument is the beginning of an OpenAPI document on disk: a line of JSON, and after it the compressed document.
type savedDocument struct {
	Size        int    `json:"size"`
	ContentType string `json:"contentType"`
	Mark        string `json:"mark"`
}

func encodeDocument(d *document) ([]byte, error) {
	head, err := json.Marshal(savedDocument{d.size, d.contentType, d.mark})
	return append(append(head, '\n'), d.packed...), err
}

func decodeDocument(data []byte) (*document, error) {
	head, packed, ok := strings.Cut(string(data), "\n")
	var saved savedDocument
	if err := json.Unmarshal([]byte(head), &saved); err != nil || !ok || saved.Size < 0 || saved.Size > maxDocument {
		return nil, errors.New("it is damaged")
	}
	return &document{packedDocument: &packedDocument{packed: []byte(packed), size: saved.Size},
		contentType: saved.ContentType, mark: saved.Mark}, nil
}

// restore shows what the disk has of the cluster, before the first request to it.
func (c *Cluster) restore() {
	d := c.fleet.opts.Disk
	if d == nil {
		c.identified = true
		c.client.gate.open()
		return
	}
	defer close(c.restoring)
	saved, err := loadSaved(d, c.name)
	if err != nil {
		c.client.log.Warn("fleet: what the disk has of a cluster cannot be read, and everything is listed", "cluster",
			c.name, "error", err)
	}
	if err != nil || saved == nil {
		return
	}
	if !saved.isFrom(c) {
		c.client.log.Warn("fleet: what the disk has of a cluster is not used, and everything is listed", "cluster", c.name,
			"reason", "it was mirrored from another server")
		return
	}
	saved.historyAge = c.fleet.opts.HistoryAge
	c.client.saved = saved
	c.savedUID.Store(&saved.uid)
	c.docs.restore(saved.documents)
	if v, err := parseVersion(saved.version); err == nil {
		c.version.Store(v)
	}
	selected := selectFrom(saved.groups, nil, c.fleet.filter)
	c.served = selected.all
	for _, fault := range c.adopt(selected) {
		c.log("restore", fault)
	}
	c.mu.Lock()
	c.discovered.done, c.discovered.first = true, time.Now()
	c.mu.Unlock()
}
