package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxVersions bounds the requests of one discovery, and atOnce those that are sent
	// at the same time.
	maxVersions = 500
	atOnce      = 8
)

// legacyGroups fetches each group version with a request of its own. It is for servers
// without aggregated discovery, which Kubernetes has since 1.26.
func (d *discovery) legacyGroups(ctx context.Context, path string, body []byte) ([]group, error) {
	groups, err := readGroups(path, body)
	if err != nil {
		return nil, d.client.redact.requestError(d.client.asking(path), fmt.Errorf("%w (%w)", errNotKubernetes, err))
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range groups {
		for j := range groups[i].versions {
			g, v := &groups[i], &groups[i].versions[j]
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				v.resources, v.err = d.resources(ctx, g.name, v.name)
			})
		}
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return nil, d.client.redact.requestError(d.client.asking(path), err)
	}
	return groups, nil
}

// readGroups parses the groups and their versions, the preferred version first.
func readGroups(path string, body []byte) ([]group, error) {
	read := readNamed
	if path == "/api" {
		read = readCore
	}
	groups, err := read(body)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, g := range groups {
		n += len(g.versions)
	}
	if n > maxVersions {
		return nil, fmt.Errorf("it lists %d group versions, more than the limit of %d", n, maxVersions)
	}
	return groups, nil
}

func readCore(body []byte) ([]group, error) {
	var core metav1.APIVersions
	if err := json.Unmarshal(body, &core); err != nil {
		return nil, fmt.Errorf("the answer is malformed: %w", err)
	}
	var g group
	for _, v := range core.Versions {
		g.versions = append(g.versions, groupVersion{name: v})
	}
	return []group{g}, nil
}

func readNamed(body []byte) ([]group, error) {
	var list metav1.APIGroupList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("the answer is malformed: %w", err)
	}
	if list.Kind != "APIGroupList" {
		return nil, errors.New("the answer is not an APIGroupList")
	}
	groups := make([]group, 0, len(list.Groups))
	for _, from := range list.Groups {
		g := group{name: from.Name}
		preferred := from.PreferredVersion.Version
		if preferred != "" {
			g.versions = append(g.versions, groupVersion{name: preferred})
		}
		for _, v := range from.Versions {
			if v.Version != preferred {
				g.versions = append(g.versions, groupVersion{name: v.Version})
			}
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// resources fetches the resources of one group version.
func (d *discovery) resources(ctx context.Context, group, version string) ([]metav1.APIResource, error) {
	if err := checkNames(group, version); err != nil {
		return nil, err
	}
	path := "/apis/" + group + "/" + version
	if group == "" {
		path = "/api/" + version
	}
	a, err := d.client.get(ctx, path, acceptJSON, "", maxDiscovery)
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(a.body, &list); err != nil {
		return nil, d.client.redact.requestError(d.client.asking(path), fmt.Errorf("%w (%w)", errNotKubernetes, err))
	}
	for i := range list.APIResources {
		list.APIResources[i].Group, list.APIResources[i].Version = group, version
	}
	return list.APIResources, nil
}
