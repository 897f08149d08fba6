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

// tellers are the resources whose changes change what a cluster serves.
var tellers = []schema.GroupResource{
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	{Group: "apiregistration.k8s.io", Resource: "apiservices"},
}

// trigger follows one of the tellers: through its mirror, or, where it is not mirrored,
// by its metadata alone.
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

// follows reports whether it still tells of the changes of a resource.
func (t *trigger) follows(gvr schema.GroupVersionResource, mirror *Resource) bool {
	return t.gvr == gvr && t.mirror == mirror && (t.own == nil || !t.own.ended())
}

// watchTriggers follows what of the tellers the cluster serves.
func (c *Cluster) watchTriggers() (faults []error) {
	for _, teller := range tellers {
		gvr, served := c.servedAs(teller)
		have := c.triggers[teller]
		mirror := c.shown.Load().byName[gvr]
		if have != nil {
			if served && have.follows(gvr, mirror) {
				continue
			}
			have.close()
			delete(c.triggers, teller)
		}
		if !served {
			continue
		}
		t, err := c.newTrigger(gvr, mirror)
		if err != nil {
			faults = append(faults, fmt.Errorf("follow %s: %w", teller, err))
			continue
		}
		c.triggers[teller] = t
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
		sub, err := mirror.Subscribe(heed[*Object](c), nil)
		if err != nil {
			return nil, err
		}
		return &trigger{gvr: gvr, mirror: mirror, sub: sub}, nil
	}
	t := &trigger{gvr: gvr}
	own, err := openMirror(c.link, gvr, "metadata", kube.Metadata,
		func(inf *informer.Informer[*metav1.PartialObjectMetadata]) (err error) {
			t.sub, err = inf.SubscribeEntries(heed[*metav1.PartialObjectMetadata](c), nil)
			return err
		})
	if err != nil {
		return nil, err
	}
	t.own = own
	return t, nil
}

// heed makes a handler that has the cluster asked when something changes. What was there
// at the start is no change.
func heed[T any](c *Cluster) func(*object.Event[*store.Entry[T]]) {
	return func(e *object.Event[*store.Entry[T]]) {
		if !e.Initial && !e.Unchanged {
			c.changedThere()
		}
	}
}
