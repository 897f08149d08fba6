package cli

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selectFlags select objects.
type selectFlags struct {
	namespace           string
	all                 bool
	labels, fields      string
	where, sortBy       string
	clusters            []string
	limit               int64
	sortable, limitable bool // the command has these flags
}

func (f *selectFlags) add(cmd *cobra.Command, r *readFlags) {
	flags := cmd.Flags()
	flags.StringVarP(&f.namespace, "namespace", "n", "", "`namespace` to read (default: the context's, or default)")
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "look in all namespaces")
	flags.StringVarP(&f.labels, "selector", "l", "", "label `selector`, such as app=web,tier!=db")
	flags.StringVar(&f.fields, "field-selector", "", "field `selector` on any field, such as status.phase=Running")
	flags.StringVar(&f.where, "where", "",
		"`expression` in CEL that is true for what is wanted, such as 'spec.replicas > 3'; it can use object, metadata, "+
			"spec, status and cluster")
	flags.StringSliceVar(&f.clusters, "cluster", nil, "`cluster` to read, may be repeated (default: all of the fleet)")
	if f.sortable {
		flags.StringVar(&f.sortBy, "sort-by", "", "`fields` to sort by, such as metadata.creationTimestamp")
	}
	if f.limitable {
		flags.Int64Var(&f.limit, "limit", 0, "show at most this `number` of objects")
	}
	complete(cmd, "namespace", r.completeNamespaces)
	complete(cmd, "cluster", r.completeClusters)
}

// ask is a request to a server: a path and its parameters.
type ask struct {
	*mapping
	path   string
	params url.Values
	fleet  bool // of all clusters at once
	names  []string
	all    bool // of all namespaces
}

// wanted is a resource as the user wrote it, and the names of its objects.
type wanted struct {
	resource string
	names    []string
}

// splitNames parses RESOURCE[,RESOURCE…] NAME… or RESOURCE/NAME….
func splitNames(args []string) (out []wanted, err error) {
	if strings.Contains(args[0], "/") {
		return splitPairs(args)
	}
	for _, r := range strings.Split(args[0], ",") {
		out = append(out, wanted{r, args[1:]})
	}
	return out, checkWanted(out)
}

// splitPairs parses RESOURCE/NAME… and groups the names by resource.
func splitPairs(args []string) (out []wanted, err error) {
	for _, arg := range args {
		resource, name, ok := strings.Cut(arg, "/")
		if !ok {
			return nil, usagef("%q follows RESOURCE/NAME and is none; write all of them so", arg)
		}
		i := slices.IndexFunc(out, func(w wanted) bool { return w.resource == resource })
		if i < 0 {
			i, out = len(out), append(out, wanted{resource: resource})
		}
		out[i].names = append(out[i].names, name)
	}
	return out, checkWanted(out)
}

func checkWanted(all []wanted) error {
	for _, w := range all {
		if w.resource == "" || strings.Contains(w.resource, ",") {
			return usagef("the resource is empty, or several in front of a name; name one, such as pods")
		}
		for _, n := range w.names {
			if faults := content.IsPathSegmentName(n); n == "" || len(faults) > 0 {
				return usagef("%q is not a name of an object: %s", n, strings.Join(faults, "; "))
			}
		}
	}
	return nil
}

// oneName parses the arguments of commands that change one object.
func oneName(args []string) (resource, name string, err error) {
	all, err := splitNames(args)
	if err != nil {
		return "", "", err
	}
	if len(all) != 1 || len(all[0].names) != 1 {
		return "", "", usagef("it takes one resource and one name, as in deploy web or deploy/web")
	}
	return all[0].resource, all[0].names[0], nil
}

// check returns an error for flags that exclude each other.
func (f *selectFlags) check(all []wanted) error {
	names := slices.ContainsFunc(all, func(w wanted) bool { return len(w.names) > 0 })
	switch {
	case names && (f.labels != "" || f.fields != "" || f.where != ""):
		return usagef("a name and a selector do not go together; give one of the two")
	case f.all && f.namespace != "":
		return usagef("--namespace and --all-namespaces do not go together; give one of the two")
	case f.all && names:
		return usagef("a name is of one namespace; give that with -n instead of -A")
	case f.limit < 0:
		return usagef("--limit %d is below zero; leave it out for no limit", f.limit)
	}
	if _, err := labels.Parse(f.labels); err != nil {
		return usagef("--selector %q is wrong: %w; write it as app=web,tier!=db or as 'env in (test, live)'", f.labels, err)
	}
	if _, err := fields.ParseSelector(f.fields); err != nil {
		return usagef("--field-selector %q is wrong: %w; write it as status.phase=Running,spec.nodeName!=node-1", f.fields,
			err)
	}
	return nil
}

// prefix returns the path of one cluster or of the fleet.
func (f *selectFlags) prefix(s *session) (prefix string, fleet bool, clusters []string, err error) {
	clusters = slices.Compact(slices.Sorted(slices.Values(f.clusters)))
	if len(clusters) == 0 && s.only != "" {
		clusters = []string{s.only}
	}
	for _, c := range clusters {
		if c == "" || strings.ContainsAny(c, "/,?#%. ") {
			return "", false, nil, usagef("%q is not a name of a cluster; mirador clusters shows them", c)
		}
	}
	if len(clusters) == 1 {
		return "/clusters/" + clusters[0], false, clusters, nil
	}
	return "/fleet", true, clusters, nil
}

// ask returns the request for the selected objects.
func (f *selectFlags) ask(s *session, m *mapping, names []string) (*ask, error) {
	prefix, fleet, clusters, err := f.prefix(s)
	if err != nil {
		return nil, err
	}
	a := &ask{mapping: m, fleet: fleet, names: names, all: f.all, params: url.Values{}}
	namespace := f.namespace
	if namespace == "" {
		namespace = s.namespace
	}
	if f.all || !m.namespaced {
		namespace = ""
	}
	if faults := content.IsPathSegmentName(namespace); len(faults) > 0 {
		return nil, usagef("%q is not a name of a namespace: %s", namespace, strings.Join(faults, "; "))
	}
	var where []string
	if f.where != "" {
		where = append(where, "("+f.where+")")
	}
	var fieldTerms []string
	if f.fields != "" {
		fieldTerms = append(fieldTerms, f.fields)
	}
	// In the fleet, namespaces are cluster.namespace. A namespace without a cluster is that of every cluster. It is in
	// the path and not a field selector, because a list of all namespaces is not refused if the user may see another one.
	a.path = resourcePath(prefix, m, namespace)
	if len(names) == 1 && !strings.ContainsAny(names[0], `:,=\`) {
		fieldTerms = append(fieldTerms, "metadata.name="+names[0])
	} else if len(names) > 0 {
		where = append(where, a.namesWhere())
	}
	a.set("labelSelector", f.labels)
	a.set("fieldSelector", strings.Join(fieldTerms, ","))
	if len(where) == 1 && f.where != "" {
		where[0] = f.where // as the user wrote it, because errors name its columns
	}
	a.set("where", strings.Join(where, " && "))
	a.set("orderBy", f.sortBy)
	if fleet {
		a.set("clusters", strings.Join(clusters, ","))
	}
	return a, nil
}

func (a *ask) set(name, value string) {
	if value != "" {
		a.params.Set(name, value)
	}
}

// resourcePath returns the path of a resource.
func resourcePath(prefix string, m *mapping, namespace string) string {
	path := prefix + "/apis/" + m.gvr.Group + "/" + m.gvr.Version
	if m.gvr.Group == "" {
		path = prefix + "/api/" + m.gvr.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + m.gvr.Resource
}

// namesWhere returns an expression that is true for objects with the given names. In the fleet, the name of a
// cluster-scoped object has its cluster as a prefix; the user may give the name with the prefix, or without it for
// every cluster. A colon may also be part of the name itself.
func (a *ask) namesWhere() string {
	var any []string
	separator := ":"
	if a.gvr.Group == "" && a.gvr.Resource == "namespaces" {
		separator = "."
	}
	for _, n := range a.names {
		any = append(any, "metadata.name == "+strconv.Quote(n))
		if a.fleet && !a.namespaced {
			any = append(any, "metadata.name == cluster + "+strconv.Quote(separator+n))
		}
		cluster, name, ok := strings.Cut(n, ":")
		switch {
		case !ok:
		case a.fleet && !a.namespaced && separator != ":":
			any = append(any, "metadata.name == "+strconv.Quote(cluster+separator+name))
		case !a.fleet || a.namespaced:
			any = append(any, fmt.Sprintf("cluster == %s && metadata.name == %s", strconv.Quote(cluster), strconv.Quote(name)))
		}
	}
	return "(" + strings.Join(any, " || ") + ")"
}

// The annotations of an object in the fleet.
const (
	clusterMark = "mirador.dev/cluster"
	versionMark = "mirador.dev/resource-version"
)

// metadata identifies an object.
type metadata struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace"`
	UID             string            `json:"uid"`
	ResourceVersion string            `json:"resourceVersion"`
	Labels          map[string]string `json:"labels"`
	Annotations     map[string]string `json:"annotations"`
}

// ownName returns the name in the object's cluster.
func (m *metadata) ownName() string {
	c := m.Annotations[clusterMark]
	if c == "" || m.Namespace != "" {
		return m.Name
	}
	if name, ok := strings.CutPrefix(m.Name, c+":"); ok {
		return name
	}
	return strings.TrimPrefix(m.Name, c+".") // a Namespace
}

// ownNamespace returns the namespace in the object's cluster.
func (m *metadata) ownNamespace() string {
	return strings.TrimPrefix(m.Namespace, m.Annotations[clusterMark]+".")
}

// ownVersion returns the version in the object's cluster, which does not change when the daemon restarts.
func (m *metadata) ownVersion() string {
	if v := m.Annotations[versionMark]; v != "" {
		return v
	}
	return m.ResourceVersion
}

// missing returns the given names that were not found.
func (a *ask) missing(found []metadata) (out []string) {
	for _, n := range a.names {
		if !slices.ContainsFunc(found, func(m metadata) bool { return m.Name == n || m.ownName() == n }) {
			out = append(out, n)
		}
	}
	return out
}

// errMissing returns an error with the names that were not found.
func (a *ask) errMissing(names []string) error {
	where := ""
	if a.namespaced {
		where = " in the namespace; look elsewhere with -n"
	}
	return notFound(fmt.Errorf("%s %s: not found%s", a.gvr.Resource, strings.Join(quoted(names), ", "), where))
}

func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strconv.Quote(n)
	}
	return out
}
