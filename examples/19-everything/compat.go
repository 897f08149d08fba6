// Package everything mirrors everything that a cluster serves: it asks discovery for every resource that can be listed
// and watched, including custom ones, starts an informer for each, and then reads the objects of one namespace from
// memory.
//
// The originals say that this can be done with a discovery client and the informer factory, and leave the code to the
// reader. Their factory does not know custom resources; its dynamic counterpart, used here, knows all resources.
package everything

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/dynamicinformer"
)

// Compat mirrors everything with client-go's names.
func Compat(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	lists, err := client.ServerPreferredResourcesWithContext(ctx)
	if _, partly := discovery.GroupDiscoveryFailedErrorGroups(err); err != nil && !partly {
		return err
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, lists)
	found, err := discovery.GroupVersionResources(lists)
	if err != nil {
		return err
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	informers := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0)
	for gvr := range found {
		informers.ForResource(gvr).Informer() // Informer registers the informer
	}
	ctx, cancel := context.WithCancel(ctx)
	defer informers.Shutdown()
	defer cancel()
	informers.Start(ctx.Done())
	for gvr, synced := range informers.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%s has not synced", gvr)
		}
	}

	fmt.Fprintln(out, "resources mirrored:", len(found))
	var lines []string
	for gvr := range found {
		objs, err := informers.ForResource(gvr).Lister().ByNamespace(namespace).List(labels.Everything())
		if err != nil {
			return err
		}
		for _, obj := range objs {
			m, err := meta.Accessor(obj)
			if err != nil {
				return err
			}
			lines = append(lines, line(gvr, m.GetName()))
		}
	}
	show(out, lines)
	return nil
}

func line(gvr schema.GroupVersionResource, name string) string {
	return fmt.Sprintf("  %s %s", gvr.GroupResource(), name)
}

func show(out io.Writer, lines []string) {
	slices.Sort(lines)
	fmt.Fprintln(out, strings.Join(lines, "\n"))
}
