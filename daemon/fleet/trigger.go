package fleet

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

// discoveryTriggers are the resources that define what a cluster serves.
var discoveryTriggers = []schema.GroupResource{
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	{Group: "apiregistration.k8s.io", Resource: "apiservices"},
}

// trigger watches one of the discoveryTriggers: through its mirror or, if it is not mirrored,
// with an informer of its metadata.
type trigger struct {
	gvr    schema.GroupVersionResource
	mirror *Resource
	own    *mirror[*metav1.PartialObjectMetadata]
	sub    interface{ Remove() }
}

func (t *trigger) close() {
	t.sub.Remove()
	if t.own != nil {
		t.own.stop()
	}
}

// follows reports whether the trigger still receives the changes of a resource.
func (t *trigger) follows(gvr schema.GroupVersionResource, mirror *Resource) bool {
	return t.gvr == gvr && t.mirror == mirror && (t.own == nil || !t.own.ended())
}

// watchTriggers starts and stops triggers, so that there is one for each of the
// discoveryTriggers that the cluster serves.
func (c *Cluster) watchTriggers() (faults []error) {
	for _, resource := range discoveryTriggers {
		gvr, served := c.servedAs(resource)
		have := c.triggers[resource]
		mirror := c.resources.Load().byName[gvr]
		if have != nil {
			if served && have.follows(gvr, mirror) {
				continue
			}
			have.close()
			delete(c.triggers, resource)
		}
		if !served {
			continue
		}
		t, err := c.newTrigger(gvr, mirror)
		if err != nil {
			faults = append(faults, fmt.Errorf("follow %s: %w", resource, err))
			continue
		}
		c.triggers[resource] = t
	}
	return faults
}

func (c *Cluster) servedAs(r schema.GroupResource) (gvr schema.GroupVersionResource, ok bool) {
	for gvr := range c.served {
		if gvr.GroupResource() == r {
			return gvr, true
		}
	}
	return gvr, false
}

func (c *Cluster) newTrigger(gvr schema.GroupVersionResource, mirror *Resource) (*trigger, error) {
	if mirror != nil {
		sub, err := mirror.Subscribe(refreshOnChange[*Object](c), nil)
		if err != nil {
			return nil, err
		}
		return &trigger{gvr: gvr, mirror: mirror, sub: sub}, nil
	}
	t := &trigger{gvr: gvr}
	own, err := openMirror(c.client, gvr, "metadata", kube.Metadata, new(informer.Options[*metav1.PartialObjectMetadata]),
		func(inf *informer.Informer[*metav1.PartialObjectMetadata]) (err error) {
			t.sub, err = inf.SubscribeEntries(refreshOnChange[*metav1.PartialObjectMetadata](c), nil)
			return err
		})
	if err != nil {
		return nil, err
	}
	t.own = own
	return t, nil
}

// refreshOnChange returns a handler that requests a refresh at every change. Initial events
// are not changes.
func refreshOnChange[T any](c *Cluster) func(*object.Event[*store.Entry[T]]) {
	return func(e *object.Event[*store.Entry[T]]) {
		if !e.Initial && !e.Unchanged {
			c.requestRefresh()
		}
	}
}
