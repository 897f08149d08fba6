package server

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/internal/jsondiff"
)

// Change is one change of an object, with the names that it has in its cluster.
type Change struct {
	Time            string `json:"time"`
	Cluster         string `json:"cluster"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
	Type            string `json:"type"` // Added, Updated or Deleted
	// By has who changed the object, as far as its managed fields say.
	By []ChangedBy `json:"by,omitempty"`
	// Changes are the differences of an update.
	Changes []jsondiff.Change `json:"changes,omitempty"`
}

// ChangedBy is the manager of the fields that changed last.
type ChangedBy struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation"`
	Subresource string `json:"subresource,omitempty"`
	Time        string `json:"time"`
}

// pastState is one state of an object.
type pastState struct {
	uid, version string
	json         []byte
}

// stateBefore returns the state before a change; nil if there was no object, or it is not known.
func stateBefore(step *pastStep) (*pastState, error) {
	if was := step.before; was != nil {
		if was.Deleted {
			return nil, nil
		}
		raw, err := was.AppendJSON(nil)
		return &pastState{was.UID, string(was.Version), raw}, err
	}
	m, err := step.at.res.At(step.change.Time.Add(-1), fleet.PastFilter{Key: step.change.Key}, nil)
	var unknown *fleet.PastError
	if errors.As(err, &unknown) {
		return nil, nil // it is before the history
	} else if err != nil {
		return nil, err
	}
	e, ok := m.Snapshot.Entry(step.change.Key)
	if !ok {
		return nil, nil
	}
	return &pastState{e.UID, string(e.Version), fleet.Bytes(e, nil)}, nil
}

// describeChange returns a step for the answer, and about how many bytes it has. If an object was replaced by another of
// its name, it is the deletion of the one and the addition of the other.
func describeChange(step *pastStep) (items []Change, size int, err error) {
	c := &step.change
	namespace, name := c.Key.Split()
	item := Change{Time: momentText(c.Time), Cluster: step.at.cluster, Namespace: namespace, Name: name, UID: c.UID,
		ResourceVersion: string(c.Version), Type: "Updated"}
	was, err := stateBefore(step)
	if err != nil {
		return nil, 0, err
	}
	if c.Deleted {
		item.Type = "Deleted"
		if was != nil {
			item.UID = was.uid
		}
		return []Change{item}, len(item.UID), nil
	}
	now, err := c.AppendJSON(nil)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case was == nil:
		item.Type = "Added"
	case was.uid != c.UID:
		gone := item
		gone.Type, gone.UID, gone.ResourceVersion = "Deleted", was.uid, was.version
		item.Type = "Added"
		items = append(items, gone)
	default:
		if item.Changes, err = jsondiff.Objects(was.json, now); err != nil {
			return nil, 0, err
		}
	}
	if item.Type == "Added" || !onlyDeletion(item.Changes) {
		item.By = changedBy(now)
	}
	encoded, err := json.Marshal(item.Changes)
	return append(items, item), len(encoded) + 200, err
}

// onlyDeletion reports whether an update only marks an object as being deleted, which managed fields do not show.
func onlyDeletion(changes []jsondiff.Change) bool {
	return len(changes) > 0 && !slices.ContainsFunc(changes, func(c jsondiff.Change) bool {
		return !strings.HasPrefix(c.Path, "/metadata/deletion") && c.Path != "/metadata/generation"
	})
}

// changedBy returns the managers of an object with the newest time.
func changedBy(obj []byte) (by []ChangedBy) {
	var managed struct {
		Metadata struct {
			ManagedFields []struct {
				Manager, Operation, Subresource string
				Time                            *metav1.Time
			}
		}
	}
	if json.Unmarshal(obj, &managed) != nil {
		return nil
	}
	var newest time.Time
	for _, m := range managed.Metadata.ManagedFields {
		if m.Time == nil || m.Time.Before(&metav1.Time{Time: newest}) {
			continue
		}
		if m.Time.After(newest) {
			newest, by = m.Time.Time, nil
		}
		by = append(by, ChangedBy{m.Manager, m.Operation, m.Subresource, m.Time.UTC().Format(time.RFC3339)})
	}
	return by
}

func encodeChanges(list *ChangeList) ([]byte, error) {
	b, err := json.Marshal(list)
	return append(b, '\n'), err
}
