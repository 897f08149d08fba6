package disk

import (
	"cmp"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// ResourceSize is what a resource takes. Bytes are estimates of what is in tables; what was written in the last seconds
// is missing.
type ResourceSize struct {
	Resource
	State, History, Bases int64
	Objects               int
	// Changes is the number of states and deletions in the history.
	Changes int
}

// ClusterSize is what a cluster takes.
type ClusterSize struct {
	Name      string
	Documents int64
	Resources []ResourceSize
}

// Sizes returns what is stored, by cluster and resource.
func (d *Disk) Sizes() ([]ClusterSize, error) {
	e, err := d.current()
	if err != nil {
		return nil, err
	}
	defer e.end()
	clusters := map[string]*ClusterSize{}
	err = scan(e.db, []byte{spaceCluster}, func(k, v []byte) error {
		c, err := decodeCluster(v)
		if err != nil {
			return err
		}
		s := &ClusterSize{Name: string(k[1:])}
		s.Documents, err = sizeBelow(e.db, documentPrefix(c.id, ""))
		clusters[s.Name] = s
		return err
	})
	if err == nil {
		err = eachResource(e.db, func(res Resource, desc *descriptor) error {
			s, err := sizeOf(e.db, res, desc)
			if c := clusters[res.Cluster]; c != nil {
				c.Resources = append(c.Resources, s)
			}
			return err
		})
	}
	if err != nil {
		return nil, d.wrap("the sizes", err)
	}
	most, err := e.db.EstimateDiskUsage([]byte{0}, []byte{0xff})
	if err != nil {
		return nil, d.wrap("the sizes", err)
	}
	scale(clusters, int64(most))
	all := make([]ClusterSize, 0, len(clusters))
	for _, c := range clusters {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b ClusterSize) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// sizeOf returns what a resource takes.
func sizeOf(db *pebble.DB, res Resource, desc *descriptor) (s ResourceSize, err error) {
	s.Resource = res
	p, err := loadProgress(db, desc.id)
	if err != nil {
		return s, err
	}
	s.Objects = int(p.objects)
	segments, err := loadSegments(db, desc.id)
	if err != nil {
		return s, err
	}
	for _, g := range segments {
		s.Changes += int(g.changes)
	}
	for _, part := range []struct {
		total *int64
		kinds []byte
	}{
		{&s.State, []byte{kindState, kindLabels, kindProgress}},
		{&s.Bases, []byte{kindBase}},
		{&s.History, []byte{kindHistory, kindDeletion, kindSegment, kindGap, kindCarried, kindUse, kindPosting, kindUnlabel}},
	} {
		for _, kind := range part.kinds {
			n, err := sizeBelow(db, appendData(nil, desc.id, kind))
			if err != nil {
				return s, err
			}
			*part.total += n
		}
	}
	return s, nil
}

// usage estimates the bytes in tables of the keys that begin with prefix.
func usage(db *pebble.DB, prefix []byte) (int64, error) {
	n, err := db.EstimateDiskUsage(prefix, after(prefix))
	return int64(n), err
}

// sizeBelow is like usage, but more exact if that is little. An estimate counts whole blocks, which have other keys,
// too, so a small one is bounded by what the keys and values take before they are compressed.
func sizeBelow(db *pebble.DB, prefix []byte) (int64, error) {
	n, err := usage(db, prefix)
	if err != nil || n > counts {
		return n, err
	}
	counted := int64(0)
	err = scan(db, prefix, func(k, v []byte) error {
		if counted += int64(len(k) + len(v)); counted >= n {
			return errCounted
		}
		return nil
	})
	if err != nil && !errors.Is(err, errCounted) {
		return n, err
	}
	return min(n, counted), nil
}

// counts is up to which estimate the keys and values are counted.
const counts = 1 << 20

var errCounted = errors.New("there is as much as was estimated")

// scale makes the sizes add up to no more than a number of bytes.
func scale(clusters map[string]*ClusterSize, most int64) {
	var all []*int64
	for _, c := range clusters {
		all = append(all, &c.Documents)
		for i := range c.Resources {
			r := &c.Resources[i]
			all = append(all, &r.State, &r.History, &r.Bases)
		}
	}
	sum := int64(0)
	for _, n := range all {
		sum += *n
	}
	if sum <= most {
		return
	}
	for _, n := range all {
		*n = int64(float64(*n) * float64(most) / float64(sum))
	}
}
