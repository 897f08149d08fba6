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
	// maxDiscovery bounds an answer: a thousand custom resources take about a megabyte.
	maxDiscovery = 32 << 20
)

// group is an API group as a server describes it, its preferred version first.
type group struct {
	name     string
	versions []groupVersion
}

type groupVersion struct {
	name      string
	resources []metav1.APIResource
	err       error // why the resources are not known
}

// discovery asks one server what it serves, and remembers what it said, so that a
// server that is asked again may say that nothing changed. One goroutine uses it.
type discovery struct {
	link *link
	last map[string]*said // by path
}

// said is an answer to "/api" or "/apis".
type said struct {
	etag   string
	groups []group
}

func newDiscovery(l *link) *discovery { return &discovery{link: l, last: map[string]*said{}} }

// groups asks for everything. Versions that the server could not tell about have an
// error instead of resources.
//
// client-go's client is not used here: it reads answers of any length, and sends as many
// requests at a time as the server lists groups.
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
	a, err := d.link.get(ctx, path, acceptAggregated, etag, maxDiscovery)
	if err != nil {
		return nil, err
	}
	if a.unchanged {
		return d.last[path].groups, nil
	}
	if !strings.Contains(a.contentType, aggregatedKind) {
		return d.oneByOne(ctx, path, a.body) // nothing is remembered: the parts have no mark
	}
	groups, err := readAggregated(a.body)
	if err != nil {
		return nil, d.link.hide.fault(d.link.asking(path), fmt.Errorf("%w (%w)", errNotKubernetes, err))
	}
	d.last[path] = &said{etag: a.etag, groups: groups}
	return groups, nil
}

var errStale = errors.New("the server that serves it does not answer")

// readAggregated reads an aggregated answer.
func readAggregated(body []byte) ([]group, error) {
	var list apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("the answer is malformed: %w", err)
	}
	if list.Kind != aggregatedKind {
		return nil, fmt.Errorf("the answer is no %s", aggregatedKind)
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
