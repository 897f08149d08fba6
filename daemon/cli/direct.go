package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// fieldManager is the field manager of writes.
const fieldManager = "mirador"

// directFlags select the cluster to write to.
type directFlags struct {
	kubeconfig, context, cluster string
	namespace                    string
	dryRun                       bool
	daemon                       readFlags // only for completion
}

const directHelp = `

It goes straight to the cluster, with your own kubeconfig and your own rights: a daemon takes no writes.
The cluster is that of --context, or of the context that a fleet calls by the name given
with --cluster, or else of the current context.`

func (d *directFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&d.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: $KUBECONFIG, or ~/.kube/config)")
	flags.StringVar(&d.context, "context", "", "`context` of the kubeconfig (default: the current one)")
	flags.StringVar(&d.cluster, "cluster", "",
		"`cluster` by its name in a fleet: the context's name as a DNS label")
	flags.StringVarP(&d.namespace, "namespace", "n", "",
		"`namespace` of objects without one (default: the context's, or default)")
	flags.BoolVar(&d.dryRun, "dry-run", false, "have the cluster check everything and keep nothing")
	complete(cmd, "context", func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return (&kubeFlags{kubeconfig: d.kubeconfig}).completeContexts(cmd, args, prefix)
	})
	complete(cmd, "namespace", d.daemon.completeNamespaces)
	complete(cmd, "cluster", d.daemon.completeClusters)
}

// choose returns the selected context and its namespace.
func (d *directFlags) choose() (context, namespace string, err error) {
	if d.context != "" && d.cluster != "" {
		return "", "", usagef("--context and --cluster both name a cluster; give one of the two")
	}
	path := (&kubeFlags{kubeconfig: d.kubeconfig}).path()
	cfg, err := loadKubeconfig(path)
	if err != nil {
		return "", "", usagef("%w; name another with --kubeconfig", err)
	}
	context = d.context
	if d.cluster != "" {
		if context, err = contextNamed(path, cfg.Contexts, d.cluster); err != nil {
			return "", "", err
		}
	}
	if context == "" {
		context = cfg.CurrentContext
	}
	c := cfg.Contexts[context]
	switch {
	case context == "":
		return "", "", usagef("the kubeconfig %s has no current context; name one with --context", path)
	case c == nil:
		return "", "", usagef("the kubeconfig %s has no context %q; kubectl config get-contexts shows what it has", path,
			context)
	case c.Namespace == "":
		return context, "default", nil
	}
	return context, c.Namespace, nil
}

// contextNamed returns the context of a cluster's name in a fleet.
func contextNamed[T any](path string, contexts map[string]T, cluster string) (string, error) {
	var found []string
	for name := range contexts {
		if named, err := fleet.FromKubeconfig(path, name); err == nil && named[cluster] != nil {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return "", usagef("no context of the kubeconfig %s leads to a cluster %q; name the context with --context", path,
			cluster)
	case 1:
		return found[0], nil
	}
	return "", usagef("several contexts of the kubeconfig %s would be the cluster %q; name one with --context", path,
		cluster)
}

// direct is a client of one cluster, for writes.
type direct struct {
	client    dynamic.Interface
	discovery *discovery.DiscoveryClient
	catalog   *catalog
	context   string
	namespace string // of objects without one
	forced    bool   // the user set it, so an object with another namespace is an error
	dryRun    []string
	release   func()
	defined   bool // a definition was written, so new kinds may appear
}

// open reads the kubeconfig and the cluster's discovery.
func (d *directFlags) open(ctx context.Context) (*direct, error) {
	name, namespace, err := d.choose()
	if err != nil {
		return nil, err
	}
	found, err := fleet.FromKubeconfig((&kubeFlags{kubeconfig: d.kubeconfig}).path(), name)
	if err != nil {
		return nil, &coded{exitUsage, err}
	}
	var cfg *rest.Config
	for _, c := range found {
		cfg = c // the only one
	}
	out := &direct{context: name, namespace: namespace}
	if d.namespace != "" {
		out.namespace, out.forced = d.namespace, true
	}
	if d.dryRun {
		out.dryRun = []string{"All"}
	}
	return out, out.connect(ctx, cfg)
}

func (d *direct) connect(ctx context.Context, cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent, cfg.QPS, cfg.Timeout = "mirador-cli", -1, time.Minute
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return fmt.Errorf("use context %q: %w; check its certificates and the files it names", d.context, err)
	}
	d.release = func() { utilnet.CloseIdleConnectionsFor(client.Transport) }
	if d.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(cfg, client); err == nil {
		d.client, err = dynamic.NewForConfigAndClient(cfg, client)
	}
	if err == nil {
		d.catalog, err = readCatalog(ctx, d.discovery)
	}
	if err != nil {
		d.release()
		return fmt.Errorf("ask the cluster of context %q what it serves: %w", d.context, ofCluster(err))
	}
	return nil
}

const (
	// definedTime bounds how long it may take until a kind is served after its definition was written.
	definedTime  = 15 * time.Second
	definedEvery = 250 * time.Millisecond
)

// mappingOf returns the resource of an object. After this command wrote a definition, it waits until the kind is
// served.
func (d *direct) mappingOf(ctx context.Context, gvk schema.GroupVersionKind) (*mapping, error) {
	m, err := d.catalog.forKind(ctx, gvk)
	until := time.Now().Add(definedTime)
	for err != nil && meta.IsNoMatchError(err) && d.defined && time.Now().Before(until) {
		select {
		case <-time.After(definedEvery):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		fresh, ferr := readCatalog(ctx, d.discovery)
		if ferr != nil {
			return nil, ferr
		}
		d.catalog = fresh
		m, err = d.catalog.forKind(ctx, gvk)
	}
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the cluster has no kind %s in %s; is its definition there?", gvk.Kind, gvk.GroupVersion())
	}
	return m, err
}

// place is the resource and namespace that an object is written to.
type place struct {
	*mapping
	dynamic.ResourceInterface
}

// of returns the place of an object, and sets its namespace.
func (d *direct) of(ctx context.Context, obj *unstructured.Unstructured) (*place, error) {
	m, err := d.mappingOf(ctx, obj.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if !m.namespaced {
		if obj.GetNamespace() != "" {
			obj.SetNamespace("")
		}
		return &place{m, d.client.Resource(m.gvr)}, nil
	}
	switch ns := obj.GetNamespace(); {
	case ns == "":
		obj.SetNamespace(d.namespace)
	case d.forced && ns != d.namespace:
		return nil, fmt.Errorf("it is of namespace %q, and --namespace says %q; make them the same", ns, d.namespace)
	}
	return &place{m, d.client.Resource(m.gvr).Namespace(obj.GetNamespace())}, nil
}

// named returns the place of a resource that was named on the command line.
func (d *direct) named(ctx context.Context, resource string) (*place, error) {
	m, err := d.catalog.find(ctx, resource)
	if err != nil {
		return nil, err
	}
	return d.at(m, d.namespace), nil
}

// namedAll is named for a resource or a category such as all.
func (d *direct) namedAll(ctx context.Context, resource string) (out []*place, err error) {
	found, err := d.catalog.findAll(ctx, resource)
	for _, m := range found {
		out = append(out, d.at(m, d.namespace))
	}
	return out, err
}

// within returns the place of an object that the cluster returned.
func (d *direct) within(p *place, obj *unstructured.Unstructured) *place {
	if ns := obj.GetNamespace(); ns != "" {
		return d.at(p.mapping, ns)
	}
	return p
}

func (d *direct) at(m *mapping, namespace string) *place {
	if m.namespaced {
		return &place{m, d.client.Resource(m.gvr).Namespace(namespace)}
	}
	return &place{m, d.client.Resource(m.gvr)}
}

// dry returns the suffix of an outcome that was not persisted.
func (d *direct) dry() string {
	if len(d.dryRun) > 0 {
		return " (dry run)"
	}
	return ""
}

var errNoName = errors.New("it has no metadata.name, only generateName, which only create can use")

func isDefinition(obj *unstructured.Unstructured) bool {
	return obj.GetKind() == "CustomResourceDefinition" && strings.HasPrefix(obj.GetAPIVersion(), "apiextensions.k8s.io/")
}
