package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/mirador-k8s/mirador/object"
)

// identityTimeout bounds the request that finds out which cluster a server belongs to.
const identityTimeout = 5 * time.Second

// reconfigure uses another config for all later requests, if it leads to the same cluster: was and next are the same
// server, or the next one has the same kube-system namespace. Nothing is relisted, and no watch ends.
func (c *Cluster) reconfigure(ctx context.Context, cfg *rest.Config, was, next *api.Cluster) (same bool, err error) {
	known := was != nil && sameServer(was, next)
	if !known && !c.origin.IsOperators() {
		return false, errOtherServer
	}
	c.client.redact.add(cfg)
	w, err := newEndpoint(cfg, c.client.conns, c.client.redact, c.fleet.opts.id)
	if err != nil {
		return false, err
	}
	if !known && !c.isSameCluster(ctx, w) {
		utilnet.CloseIdleConnectionsFor(w.next)
		return false, nil
	}
	c.client.transport.use(w)
	c.configNumber.Add(1)
	c.fleet.notify()
	select {
	case c.reconfigured <- struct{}{}: // requests that failed with the old credentials are retried at once
	default:
	}
	return true, nil
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

const (
	systemNamespace = "kube-system" // its UID is commonly used as the identity of a cluster
	maxNamespace    = 1 << 20
)

// isSameCluster reports whether the server at an endpoint belongs to this cluster. In doubt it returns false.
func (c *Cluster) isSameCluster(ctx context.Context, w *endpoint) bool {
	res, ok := c.Resource(namespaces)
	if !ok {
		return false
	}
	have, ok := res.Entry(object.NewKey("", systemNamespace))
	if !ok || have.UID == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, identityTimeout)
	defer cancel()
	there := &clusterClient{base: w.base, transport: newSwitchingTransport(w), redact: c.client.redact}
	there.client = &http.Client{Transport: there.transport}
	uid, err := uidAt(ctx, there, "")
	if err != nil {
		c.log("find the cluster of a changed kubeconfig", err)
		return false
	}
	return uid == have.UID
}

// errOtherServer is the error for a server of which nothing but its own word says that it is the same cluster. UIDs are
// no secrets: whoever may change the kubeconfig of a member could give the objects that are mirrored already the roles
// and bindings of a server of their own, and read them. The authority of its certificate does not vouch for it either:
// it may vouch for a node, or for a service behind the API server's proxy.
var errOtherServer = errors.New("the kubeconfig differs in more than its credentials (server, certificate authority, " +
	"proxy), so it counts as another cluster")

// serverID identifies a server and the way to it: everything of a config but the credentials.
func serverID(cfg *rest.Config) string {
	proxy := ""
	if at, err := url.Parse(cfg.Host); err == nil && cfg.Proxy != nil {
		if by, err := cfg.Proxy(&http.Request{URL: at}); err == nil && by != nil {
			proxy = by.String()
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %t %q %q %q", cfg.Host, cfg.Insecure, cfg.ServerName, cfg.CAData, proxy))
	return hex.EncodeToString(sum[:])
}

// sameServer reports whether two contexts have the same server and verify its certificate in the same way, so that they
// differ at most in credentials.
func sameServer(a, b *api.Cluster) bool {
	x, y := a.DeepCopy(), b.DeepCopy()
	x.LocationOfOrigin, y.LocationOfOrigin = "", ""
	x.Extensions, y.Extensions = nil, nil
	return reflect.DeepEqual(x, y)
}
