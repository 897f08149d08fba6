package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/object"
)

// listed lists the pods from the server with client-go, all at one version.
func listed(ctx context.Context, cfg *rest.Config,
	client *http.Client) (map[object.Key]object.Version, object.Version, error) {
	c, err := metadata.NewForConfigAndClient(cfg, client)
	if err != nil {
		return nil, "", err
	}
	pods := c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	found := map[object.Key]object.Version{}
	for opts := (metav1.ListOptions{Limit: 1000}); ; {
		page, err := pods.List(ctx, opts)
		if err != nil {
			return nil, "", fmt.Errorf("list the pods to compare with: %w", err)
		}
		for _, p := range page.Items {
			found[object.NewKey(p.Namespace, p.Name)] = object.Version(p.ResourceVersion)
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return found, object.Version(page.ResourceVersion), nil
		}
	}
}

// differences describes the first few differences of two views.
func differences(got, want map[object.Key]object.Version) []string {
	var out []string
	for k, v := range want {
		if g, ok := got[k]; !ok {
			out = append(out, fmt.Sprintf("%s is missing", k))
		} else if g != v {
			out = append(out, fmt.Sprintf("%s has version %s, want %s", k, g, v))
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			out = append(out, fmt.Sprintf("%s was deleted but is still stored", k))
		}
	}
	slices.Sort(out)
	if n := len(out); n > 5 {
		out = append(out[:5], fmt.Sprintf("and %d more", n-5))
	}
	return out
}
