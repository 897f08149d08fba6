package server

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// ReportUpdate is a line of /clusters?watch=true. The first line has the whole report; each later line has what has
// changed since. Report.Update applies a line to a report.
type ReportUpdate struct {
	Now    time.Time `json:"now"`
	Memory Memory    `json:"memory"`
	Disk   *Disk     `json:"disk,omitempty"`
	// Whole says that Clusters has all clusters, and replaces everything in earlier lines.
	Whole bool `json:"whole,omitempty"`
	// Clusters are new clusters, and those that have other resources than before, with everything about them.
	Clusters []ClusterReport `json:"clusters,omitzero"`
	// Changed are clusters with other changes. Their Resources are only those that have changed.
	Changed []ClusterReport `json:"changed,omitempty"`
	// Left are the names of clusters that are no longer members.
	Left []string `json:"left,omitempty"`
	// LastHeard has the LastHeardSeconds of all clusters by name. It is in a line at least every 10 seconds.
	LastHeard map[string]float64 `json:"lastHeard,omitempty"`
}

// quiet is the last-event age from which it counts as a change. An idle watch gets a bookmark every minute, so a
// smaller age only says that all is well, and sending it to every page each second would be most of the report.
const quiet = 2 * time.Minute

// silent reports whether the last-event age of the resource is higher than that of an idle watch.
func (r *ResourceReport) silent() bool { return r.LastHeardSeconds >= quiet.Seconds() }

// differs reports whether a resource has changed in a way that followers are sent.
func (r *ResourceReport) differs(old *ResourceReport) bool {
	a, b := *r, *old
	a.LastHeardSeconds, b.LastHeardSeconds = 0, 0
	return a != b || r.silent() != old.silent()
}

// sameResource reports whether two reports are about the same resource.
func (r *ResourceReport) sameResource(other *ResourceReport) bool {
	return r.Resource == other.Resource && r.Version == other.Version && r.Group == other.Group
}

// Update applies the next line of a watch to the report. The last-event age of a resource is as of the last line that
// had the resource; if it is above two minutes, it grows until another line has it.
func (r *Report) Update(u *ReportUpdate) {
	if u.Whole {
		r.Clusters = nil
	}
	passed := u.Now.Sub(r.Now).Seconds()
	for i := range r.Clusters {
		for k := range r.Clusters[i].Resources {
			if res := &r.Clusters[i].Resources[k]; res.silent() {
				res.LastHeardSeconds += passed
			}
		}
	}
	r.Now, r.Memory, r.Disk = u.Now, u.Memory, u.Disk
	r.Clusters = slices.DeleteFunc(r.Clusters, func(c ClusterReport) bool { return slices.Contains(u.Left, c.Name) })
	for _, c := range u.Clusters {
		if at, ok := r.find(c.Name); ok {
			r.Clusters[at] = c
		} else {
			r.Clusters = slices.Insert(r.Clusters, at, c)
		}
	}
	for _, c := range u.Changed {
		if at, ok := r.find(c.Name); ok {
			c.Resources = withChanged(r.Clusters[at].Resources, c.Resources)
			r.Clusters[at] = c
		}
	}
	for i := range r.Clusters {
		if age, ok := u.LastHeard[r.Clusters[i].Name]; ok {
			r.Clusters[i].LastHeardSeconds = age
		}
	}
}

// withChanged replaces the changed resources in all.
func withChanged(all, changed []ResourceReport) []ResourceReport {
	for i := range changed {
		if at := slices.IndexFunc(all, func(r ResourceReport) bool { return r.sameResource(&changed[i]) }); at >= 0 {
			all[at] = changed[i]
		}
	}
	return all
}

func (r *Report) find(cluster string) (at int, ok bool) {
	return slices.BinarySearchFunc(r.Clusters, cluster,
		func(c ClusterReport, name string) int { return cmp.Compare(c.Name, name) })
}

// since returns what has changed since an older report. ok is false if nothing has changed that followers are sent.
func (r *Report) since(old *Report) (u ReportUpdate, ok bool) {
	u = ReportUpdate{Now: r.Now, Memory: r.Memory, Disk: r.Disk}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		at, known := old.find(c.Name)
		if !known || !slices.EqualFunc(c.Resources, old.Clusters[at].Resources,
			func(a, b ResourceReport) bool { return a.sameResource(&b) }) {
			u.Clusters = append(u.Clusters, *c)
			continue
		}
		before := &old.Clusters[at]
		change := *c
		change.Resources = []ResourceReport{}
		for k := range c.Resources {
			if c.Resources[k].differs(&before.Resources[k]) {
				change.Resources = append(change.Resources, c.Resources[k])
			}
		}
		if len(change.Resources) > 0 || c.headDiffers(before) {
			u.Changed = append(u.Changed, change)
		}
	}
	for i := range old.Clusters {
		if _, there := r.find(old.Clusters[i].Name); !there {
			u.Left = append(u.Left, old.Clusters[i].Name)
		}
	}
	return u, len(u.Clusters)+len(u.Changed)+len(u.Left) > 0 || r.Disk.failed() != old.Disk.failed()
}

// failed returns why the data folder is not written, or "".
func (d *Disk) failed() string {
	if d == nil {
		return ""
	}
	return d.Error
}

// headDiffers reports whether the cluster itself has changed, apart from its resources and its last-event age.
func (c *ClusterReport) headDiffers(old *ClusterReport) bool {
	return c.State != old.State || !c.Since.Equal(old.Since) || c.Error != old.Error || c.Version != old.Version ||
		c.Origin != old.Origin || c.Authorization != old.Authorization
}

// lastHeard returns the last-event ages of all clusters, rounded for display.
func (r *Report) lastHeard() map[string]float64 {
	out := make(map[string]float64, len(r.Clusters))
	for i := range r.Clusters {
		out[r.Clusters[i].Name] = math.Round(r.Clusters[i].LastHeardSeconds*10) / 10
	}
	return out
}
