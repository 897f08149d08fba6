package fleet

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/mirador-k8s/mirador/object"
)

// renewTimeout is how long a server may take to say which cluster it is.
const renewTimeout = 5 * time.Second

// renew has the cluster reached by another config from now on, if that is known to lead to the same cluster: known
// says so, or the server there has the same kube-system namespace. Nothing is listed anew, and no watch ends.
func (c *Cluster) renew(ctx context.Context, cfg *rest.Config, known bool) (same bool, err error) {
	c.link.hide.add(cfg)
	w, err := newWay(cfg, c.link.conns, c.link.hide, c.fleet.opts.id)
	if err != nil {
		return false, err
	}
	if !known && !c.isAt(ctx, w) {
		utilnet.CloseIdleConnectionsFor(w.next)
		return false, nil
	}
	c.link.ways.use(w)
	select {
	case c.renewed <- struct{}{}: // what failed with the old credentials is tried at once
	default:
	}
	return true, nil
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

const (
	systemNamespace = "kube-system" // its UID is commonly taken for the identity of a cluster
	maxNamespace    = 1 << 20
)

// isAt asks the server at the other end of a way whether it is this cluster's. In doubt it is not.
func (c *Cluster) isAt(ctx context.Context, w *way) bool {
	res, ok := c.Resource(namespaces)
	if !ok {
		return false
	}
	have, ok := res.Entry(object.NewKey("", systemNamespace))
	if !ok || have.UID == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	there := &link{base: w.base, ways: newSwitched(w), hide: c.link.hide}
	there.client = &http.Client{Transport: there.ways}
	a, err := there.get(ctx, "/api/v1/namespaces/"+systemNamespace, acceptJSON, "", maxNamespace)
	if err != nil {
		c.log("ask which cluster a changed kubeconfig leads to", err)
		return false
	}
	var ns metav1.PartialObjectMetadata
	return json.Unmarshal(a.body, &ns) == nil && string(ns.UID) == have.UID
}

// sameServer reports whether two contexts lead to the same server, whose certificate is checked in the same way: they
// differ in credentials at most.
func sameServer(a, b *api.Cluster) bool {
	x, y := a.DeepCopy(), b.DeepCopy()
	x.LocationOfOrigin, y.LocationOfOrigin = "", ""
	x.Extensions, y.Extensions = nil, nil
	return reflect.DeepEqual(x, y)
}
