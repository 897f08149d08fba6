package server

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// tableVersions has versions of resources that API servers have besides the preferred one, and the preferred one. The
// Tables and the metadata of both are the same, so they are answered without converting objects. k9s reads Tables of
// HorizontalPodAutoscalers in v1, and its overview stops at an error.
var tableVersions = map[schema.GroupVersionResource]string{
	{Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"}: "v2",
}

// useTableVersion replaces the version of a request by the mirrored one, if the answer has no objects and is the same
// in both. cluster is nil at /fleet.
func (s *Server) useTableVersion(req *request, cluster *fleet.Cluster) {
	preferred, ok := tableVersions[req.gvr()]
	if !ok || req.form == whole || req.form == asTable && req.include == metav1.IncludeObject {
		return
	}
	clusters := []*fleet.Cluster{cluster}
	if cluster == nil {
		clusters = s.fleet.Clusters()
	}
	for _, c := range clusters {
		if _, mirrored := c.Resource(req.gvr()); mirrored {
			return
		}
	}
	req.version = preferred
}
