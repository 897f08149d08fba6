package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
)

// need describes what a command needs from a server in this process.
type need struct {
	// resources are the resources to mirror, as the user wrote them; none means all.
	resources []string
	// nothing disables mirroring: the command only needs a client of the cluster.
	nothing bool
	// unsynced disables waiting for the mirrors.
	unsynced bool
}

// definitions are mirrored for the columns of custom resources.
const definitions = "customresourcedefinitions.apiextensions.k8s.io"

// configs returns the clusters of a kubeconfig by their names in a fleet, and the namespace of the first context.
func (k *kubeFlags) configs() (map[string]*rest.Config, string, error) {
	path, contexts := k.path(), k.contexts
	whole, err := loadKubeconfig(path)
	if err != nil && k.kubeconfig == "" {
		return nil, "", unreachable(fmt.Errorf("%w; name one with --kubeconfig", err))
	} else if err != nil {
		return nil, "", usagef("%w; name another with --kubeconfig", err)
	}
	if len(contexts) == 0 {
		if whole.CurrentContext == "" {
			return nil, "", usagef("the kubeconfig %s has no current context; name one with --context", path)
		}
		contexts = []string{whole.CurrentContext}
	}
	found, err := fleet.FromKubeconfig(path, contexts...)
	if err != nil {
		return nil, "", &coded{exitUsage, err}
	}
	namespace := "default"
	if c := whole.Contexts[contexts[0]]; c != nil && c.Namespace != "" {
		namespace = c.Namespace
	}
	return found, namespace, nil
}

// openInProcess serves clusters in this process, for this process only.
func openInProcess(ctx context.Context, k *kubeFlags, n need, warn io.Writer) (*session, error) {
	configs, namespace, err := k.configs()
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(configs))
	s := &session{warn: warn, namespace: namespace, cluster: configs[names[0]],
		base: &url.URL{Scheme: "http", Host: "localhost"}}
	if len(names) == 1 {
		s.only = names[0]
	}
	if n.nothing {
		s.http = &http.Client{}
		return s, nil
	}
	opts := fleet.Options{Logger: slog.New(slog.DiscardHandler), WithoutOpenAPI: true}
	var wanted []schema.GroupResource
	if len(n.resources) > 0 {
		found, err := findAnywhere(ctx, configs, n.resources)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			wanted = append(wanted, m.gvr.GroupResource())
			opts.Secrets = opts.Secrets || m.gvr.Group == "" && m.gvr.Resource == "secrets"
			if !scheme.Scheme.IsGroupRegistered(m.gvr.Group) {
				wanted = append(wanted, schema.ParseGroupResource(definitions))
			}
		}
		for _, gr := range wanted {
			opts.Include = append(opts.Include, gr.Resource+"."+gr.Group)
		}
	}
	p, err := startInProcess(opts, configs, k.path())
	if err != nil {
		return nil, err
	}
	s.http, s.end = p.client, p.stop
	if n.unsynced {
		return s, nil
	}
	if err := p.await(ctx, wanted, warn); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// findAnywhere finds resources in the first cluster that answers and has all of them. It sends the requests at once,
// so that a dead cluster does not delay the others.
func findAnywhere(ctx context.Context, configs map[string]*rest.Config, resources []string) ([]*mapping, error) {
	// client-go would log the requests that are cancelled below.
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	type answer struct {
		found []*mapping
		err   error
	}
	answers := make(chan answer, len(configs))
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	for name, cfg := range configs {
		asking.Go(func() {
			found, err := findIn(ctx, name, cfg, resources)
			answers <- answer{found, err}
		})
	}
	var failed error
	for range configs {
		a := <-answers
		if a.err == nil {
			return a.found, nil
		}
		if failed == nil || ExitCode(failed) == exitUnreachable {
			failed = a.err // an error of a cluster that answers takes precedence
		}
	}
	return nil, failed
}

func findIn(ctx context.Context, name string, cfg *rest.Config, resources []string) (all []*mapping, err error) {
	dc, release, err := clusterDiscovery(cfg)
	if err != nil {
		return nil, err
	}
	defer release()
	c, err := readCatalog(ctx, dc)
	if err != nil {
		return nil, fmt.Errorf("ask cluster %q what it serves: %w", name, ofCluster(err))
	}
	for _, r := range resources {
		found, err := c.findAll(ctx, r)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// clusterDiscovery returns a discovery client of a cluster.
func clusterDiscovery(cfg *rest.Config) (dc *discovery.DiscoveryClient, release func(), err error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent, cfg.QPS, cfg.Timeout = "mirador-cli", -1, 20*time.Second
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("use the kubeconfig: %w; check its certificates and the files it names", err)
	}
	if dc, err = discovery.NewDiscoveryClientForConfigAndClient(cfg, client); err != nil {
		return nil, nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	return dc, func() { utilnet.CloseIdleConnectionsFor(client.Transport) }, nil
}

// inProcess is a fleet and its server.
type inProcess struct {
	fleet  *fleet.Fleet
	client *http.Client
	stop   func()
}

// startInProcess starts to mirror and to serve.
func startInProcess(opts fleet.Options, configs map[string]*rest.Config, path string) (*inProcess, error) {
	fl, err := fleet.New(opts)
	if err != nil {
		return nil, err
	}
	for name, cfg := range configs {
		if err := fl.Join(name, cfg, fleet.Origin{Kind: fleet.FromFile, Detail: path}); err != nil {
			return nil, err
		}
	}
	srv, err := server.New(fl, server.Options{StartGrace: faultTime})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	listener := newInMemory()
	web := &http.Server{Handler: srv, ErrorLog: log.New(io.Discard, "", 0)}
	var wg sync.WaitGroup
	wg.Go(func() { fl.Run(ctx) })         // its error does not matter: the command is over
	wg.Go(func() { srv.Run(ctx) })        // likewise
	wg.Go(func() { web.Serve(listener) }) // ends when it is closed
	transport := &http.Transport{DialContext: listener.dial, DisableCompression: true}
	return &inProcess{fleet: fl, client: &http.Client{Transport: transport}, stop: func() {
		cancel()
		transport.CloseIdleConnections()
		web.Close() // there are no clients any more
		wg.Wait()
	}}, nil
}

// The time before progress is reported, the time for which a failing cluster is retried, and the time that a silent
// cluster has after another one has answered. Tests shorten them.
var (
	quietTime  = 2 * time.Second
	faultTime  = 3 * time.Second
	silentTime = 5 * time.Second
)

const lookEvery = 10 * time.Millisecond

// await waits until the wanted resources are mirrored in every cluster; an empty wanted means all. A failing cluster
// is omitted with a warning, unless all fail.
func (p *inProcess) await(ctx context.Context, wanted []schema.GroupResource, warn io.Writer) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	said, began := time.Now(), time.Now()
	faulty := map[string]time.Time{} // the time of the first error
	answered := false                // at least one cluster is ready
	for {
		var failed []error
		open := 0
		for _, c := range p.fleet.Clusters() {
			done, err := synced(c, wanted)
			if answered = answered || done; answered && !done && c.Health().State == fleet.Joining &&
				time.Since(began) > silentTime {
				failed = append(failed, unreachable(fmt.Errorf("cluster %q does not answer", c.Name())))
				continue
			}
			if err == nil || done {
				delete(faulty, c.Name())
			} else if faulty[c.Name()].IsZero() {
				faulty[c.Name()] = time.Now()
			}
			if since := faulty[c.Name()]; !since.IsZero() && time.Since(since) > faultTime {
				failed = append(failed, err)
			} else if !done {
				open++
			}
		}
		if open == 0 {
			return judge(failed, len(p.fleet.Clusters()), warn)
		}
		if time.Since(said) > quietTime {
			said = time.Now()
			p.reportProgress(wanted, warn)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func judge(failed []error, clusters int, warn io.Writer) error {
	if len(failed) == clusters && clusters > 0 {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		fmt.Fprintf(warn, "warning: %v; it is left out\n", err)
	}
	return nil
}

// synced reports whether a cluster is ready to answer, or the reason why it is not.
func synced(c *fleet.Cluster, wanted []schema.GroupResource) (bool, error) {
	h := c.Health()
	if h.State == fleet.Unreachable {
		return false, unreachable(fmt.Errorf("cluster %q cannot be reached: %s", c.Name(), h.Err))
	}
	if len(wanted) == 0 {
		return h.State == fleet.Ready || h.State == fleet.Degraded, nil
	}
	if h.State == fleet.Joining {
		return false, nil
	}
	for _, r := range c.Resources() {
		if !slices.Contains(wanted, r.GVR().GroupResource()) || r.Synced() {
			continue
		}
		if err := r.Health().Reflector.Err; err != nil {
			return false, fmt.Errorf("mirror %s of cluster %q: %w", r.GVR().GroupResource(), c.Name(), err)
		}
		return false, nil
	}
	return true, nil
}

// reportProgress tells the user how much has been read.
func (p *inProcess) reportProgress(wanted []schema.GroupResource, warn io.Writer) {
	for _, c := range p.fleet.Clusters() {
		if done, _ := synced(c, wanted); done {
			continue
		}
		h := c.Health()
		fmt.Fprintf(warn, "reading cluster %s: %s, %d of %d resources, %d objects so far\n", c.Name(), h.State, h.Synced,
			h.Resources, h.Objects)
	}
}
