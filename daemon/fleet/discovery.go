package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
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
	all    *answeredGroups          // of the last answers, which other clusters find while it is used
}

// cachedGroups is an answer to "/api" or "/apis".
type cachedGroups struct {
	etag string
	*answeredGroups
}

// answeredGroups is what an answer says, for all clusters that have sent the same. It never changes.
type answeredGroups struct {
	content contentHash // of the answer or answers; zero if one came in parts
	groups  []group
}

func newDiscovery(l *clusterClient) *discovery {
	return &discovery{client: l, last: map[string]*cachedGroups{}}
}

// groups fetches all groups. A version whose resources the server does not know at the
// moment has an error instead.
//
// client-go's discovery client is not used here: it reads answers of any length, and sends
// as many requests at once as the server lists groups.
func (d *discovery) groups(ctx context.Context) (*answeredGroups, error) {
	core, err := d.ask(ctx, "/api")
	if codeOf(err) == http.StatusNotFound {
		core, err = new(answeredGroups), nil
	}
	if err != nil {
		return nil, err
	}
	named, err := d.ask(ctx, "/apis")
	if err != nil {
		return nil, err
	}
	d.all = &answeredGroups{groups: slices.Concat(core.groups, named.groups)}
	if core.content != (contentHash{}) && named.content != (contentHash{}) {
		d.all.content = hashOfContent(slices.Concat(core.content[:], named.content[:]))
		d.all = d.client.options.equal.groups.add(d.all.content, d.all)
	}
	return d.all, nil
}

func (d *discovery) ask(ctx context.Context, path string) (*answeredGroups, error) {
	etag := ""
	if last := d.last[path]; last != nil {
		etag = last.etag
	}
	a, err := d.client.get(ctx, path, acceptAggregated, etag, maxDiscovery)
	if err != nil {
		return nil, err
	}
	if a.unchanged {
		return d.last[path].answeredGroups, nil
	}
	if !strings.Contains(a.contentType, aggregatedKind) {
		groups, err := d.legacyGroups(ctx, path, a.body) // not cached: the parts have no ETag
		return &answeredGroups{groups: groups}, err
	}
	content := hashOfContent(a.body)
	answered, err := d.client.options.equal.groups.of(content, func() (*answeredGroups, error) {
		groups, err := readAggregated(a.body)
		return &answeredGroups{content, groups}, err
	})
	if err != nil {
		return nil, d.client.redact.requestError(d.client.asking(path), fmt.Errorf("%w (%w)", errNotKubernetes, err))
	}
	d.last[path] = &cachedGroups{a.etag, answered}
	return answered, nil
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
