package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/object"
)

const systemNamespacePath = "/api/v1/namespaces/" + systemNamespace

// uidAt returns the UID of the kube-system namespace, which is commonly used as the identity of a cluster. If version is
// not empty, the server must have reached it; errFuture is wrapped if it has not.
func uidAt(ctx context.Context, l *clusterClient, version object.Version) (string, error) {
	path := systemNamespacePath
	if version != "" {
		path += "?resourceVersion=" + url.QueryEscape(string(version))
	}
	a, err := l.get(ctx, path, acceptJSON, "", maxNamespace)
	if err != nil {
		if status, ok := errors.AsType[*statusError](err); ok && version != "" && status.future {
			return "", fmt.Errorf("%w: it has not reached version %s", errFuture, version)
		}
		return "", err
	}
	var ns metav1.PartialObjectMetadata
	if err := json.Unmarshal(a.body, &ns); err != nil || ns.UID == "" {
		return "", l.redact.requestError(l.asking(path), errNotKubernetes)
	}
	return string(ns.UID), nil
}

// isFrom reports whether what is on disk was mirrored from the server of the cluster, as far as that matters: see
// serverID.
func (s *savedCluster) isFrom(c *Cluster) bool {
	_, by, _ := strings.Cut(s.uid, "/")
	return by == c.serverID
}

// uidAt returns what UID returns.
func (c *Cluster) uidAt(ctx context.Context, version object.Version) (string, error) {
	uid, err := uidAt(ctx, c.client, version)
	if err == nil && c.serverID != "" {
		uid += "/" + c.serverID
	}
	return uid, err
}

// errFuture is the error for a version that the server has not reached: its etcd was restored or replaced.
var errFuture = errors.New("the cluster's history was reset")

// identify finds out whether the server is the cluster that the disk has, before anything of it is mirrored. It does
// nothing if that is known.
//
// What was restored stays if the server has the same kube-system namespace and has reached every restored version.
// Otherwise it is dropped, and everything is listed: two clusters, or two histories of one, are never mixed. Versions
// are compared in one request, because the resources of a cluster count them together. The resources of an API server
// with an etcd of its own, and events if they have one, are compared when their watches are opened.
func (c *Cluster) identify(ctx context.Context) error {
	if c.identified {
		return nil
	}
	saved := c.client.saved
	uid, err := c.uidAt(ctx, saved.newestVersion())
	switch {
	case err == nil && saved != nil && uid != saved.uid:
		c.discard(errors.New("the server is another cluster"))
	case errors.Is(err, errFuture):
		c.discard(err)
		if uid, err = c.uidAt(ctx, ""); err != nil {
			return err
		}
	case err != nil && !definite(err):
		return err
	case err != nil:
		c.log("find out which cluster it is, so nothing of it is kept on disk", err)
		c.discard(err)
	}
	c.uid.Store(&uid)
	c.identified = true
	c.client.gate.open()
	return nil
}

// definite reports whether asking again would give the same answer.
func definite(err error) bool {
	switch codeOf(err) {
	case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}

// discard drops what was restored from disk.
func (c *Cluster) discard(why error) {
	if c.client.saved == nil {
		return
	}
	c.client.log.Warn("fleet: what the disk has of a cluster is not used, and everything is listed", "cluster", c.name,
		"reason", why)
	c.client.saved, c.served = nil, nil
	c.savedUID.Store(nil)
	old := c.resources.Load()
	c.mu.Lock()
	c.discovered = discoveryStatus{}
	c.mu.Unlock()
	c.version.Store(nil)
	c.docs.forget()
	c.show(nil, nil)
	for _, r := range old.sorted {
		r.close()
	}
	c.fleet.notify()
}
