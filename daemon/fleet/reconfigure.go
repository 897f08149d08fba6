package fleet

import (
	"context"
	"net/http"
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

// reconfigure uses another config for all later requests, if it leads to the same cluster: known says so, or the
// server has the same kube-system namespace. Nothing is relisted, and no watch ends.
func (c *Cluster) reconfigure(ctx context.Context, cfg *rest.Config, known bool) (same bool, err error) {
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

// sameServer reports whether two contexts have the same server and verify its certificate in the same way, so that they
// differ at most in credentials.
func sameServer(a, b *api.Cluster) bool {
	x, y := a.DeepCopy(), b.DeepCopy()
	x.LocationOfOrigin, y.LocationOfOrigin = "", ""
	x.Extensions, y.Extensions = nil, nil
	return reflect.DeepEqual(x, y)
}
