// Package discovery asks a cluster which resources it has, as "kubectl api-resources" does: for each group its
// preferred version, and the resources in it.
//
// Corrected in the original program: groups whose discovery failed are printed, where the original ignores the error.
// The output is sorted and has only names.
package discovery

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	clientset "github.com/mirador-k8s/mirador/examples/16-clientset"
)

// Run is the original program.
func Run(ctx context.Context, kubeconfig, _ string, out io.Writer) error {
	config, err := clientset.NewK8sConfig(kubeconfig)
	if err != nil {
		return err
	}
	client, err := config.InitDiscoveryClient()
	if err != nil {
		return err
	}
	preferredResources, err := client.ServerPreferredResourcesWithContext(ctx)
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return err
	}
	for group, err := range failed {
		fmt.Fprintln(out, group, "could not be asked:", err)
	}
	slices.SortFunc(preferredResources,
		func(a, b *metav1.APIResourceList) int { return strings.Compare(a.GroupVersion, b.GroupVersion) })
	for _, pr := range preferredResources {
		var names []string
		for _, r := range pr.APIResources {
			names = append(names, r.Name)
		}
		if len(names) == 0 {
			continue // the group prefers another version for all of them
		}
		slices.Sort(names)
		fmt.Fprintln(out, pr.GroupVersion, ":", strings.Join(names, " "))
	}
	return nil
}
