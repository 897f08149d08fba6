package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	aggregatedKind   = "APIGroupDiscoveryList"
	acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=" + aggregatedKind +
		",application/json;g=apidiscovery.k8s.io;v=v2beta1;as=" + aggregatedKind + ",application/json"
	acceptJSON = "application/json"
	// maxDiscovery bounds an answer. A thousand custom resources need about a megabyte.
	maxDiscovery = 32 << 20
)

// group is an API group, its preferred version first.
type group struct {
	name     string
	versions []groupVersion
}

type groupVersion struct {
	name      string
	resources []metav1.APIResource
	err       error // the reason if the resources are unknown
}

// discovery fetches the resources that a server serves. It caches the answers by their
// ETags. It must be used by one goroutine only.
type discovery struct {
	client *clusterClient
	last   map[string]*cachedGroups // by path
}

// cachedGroups is an answer to "/api" or "/apis".
type cachedGroups struct {
	etag   string
	groups []group
}

func newDiscovery(l *clusterClient) *discovery {
	return &discovery{client: l, last: map[string]*cachedGroups{}}
}

// groups fetches all groups. A version whose resources the server does not know at the
// moment has an error instead.
//
// client-go's discovery client is not used here: it reads answers of any length, and sends
// as many requests at once as the server lists groups.
func (d *discovery) groups(ctx context.Context) ([]group, error) {
	core, err := d.ask(ctx, "/api")
	if err != nil && codeOf(err) != http.StatusNotFound {
		return nil, err
	}
	named, err := d.ask(ctx, "/apis")
	if err != nil {
		return nil, err
	}
	return append(core[:len(core):len(core)], named...), nil
}

func (d *discovery) ask(ctx context.Context, path string) ([]group, error) {
	etag := ""
	if last := d.last[path]; last != nil {
		etag = last.etag
	}
	a, err := d.client.get(ctx, path, acceptAggregated, etag, maxDiscovery)
	if err != nil {
		return nil, err
	}
	if a.unchanged {
		return d.last[path].groups, nil
	}
	if !strings.Contains(a.contentType, aggregatedKind) {
		return d.legacyGroups(ctx, path, a.body) // not cached: the parts have no ETag
	}
	groups, err := readAggregated(a.body)
	if err != nil {
		return nil, d.client.redact.requestError(d.client.asking(path), fmt.Errorf("%w (%w)", errNotKubernetes, err))
	}
	d.last[path] = &cachedGroups{etag: a.etag, groups: groups}
	return groups, nil
}

var errStale = errors.New("the server that serves it does not answer")

// readAggregated parses an aggregated answer.
func readAggregated(body []byte) ([]group, error) {
	var list apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("the answer is malformed: %w", err)
	}
	if list.Kind != aggregatedKind {
		return nil, fmt.Errorf("the answer is not an %s", aggregatedKind)
	}
	out := make([]group, 0, len(list.Items))
	for i := range list.Items {
		item := &list.Items[i]
		g := group{name: item.Name}
		for j := range item.Versions {
			v := &item.Versions[j]
			gv := groupVersion{name: v.Version}
			if v.Freshness == apidiscovery.DiscoveryFreshnessStale {
				gv.err = errStale
			}
			for k := range v.Resources {
				gv.resources = append(gv.resources, plainResource(item.Name, v.Version, &v.Resources[k]))
			}
			g.versions = append(g.versions, gv)
		}
		out = append(out, g)
	}
	return out, nil
}

func plainResource(group, version string, r *apidiscovery.APIResourceDiscovery) metav1.APIResource {
	out := metav1.APIResource{
		Name: r.Resource, SingularName: r.SingularResource, Namespaced: r.Scope == apidiscovery.ScopeNamespace,
		Group: group, Version: version, Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
	}
	if r.ResponseKind != nil {
		out.Kind = r.ResponseKind.Kind
	}
	return out
}
