package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// warnDeprecated adds the warning that an API server of the cluster's version adds for a deprecated kind.
func warnDeprecated(w http.ResponseWriter, c *fleet.Cluster, res *fleet.Resource) {
	message, since := deprecation(res.GVK())
	warnDeprecatedSince(w, c, message, since)
}

// warnDeprecatedSince is like warnDeprecated, for callers that already have the result of deprecation.
func warnDeprecatedSince(w http.ResponseWriter, c *fleet.Cluster, message string, since release) {
	if message == "" {
		return
	}
	if have, ok := parseRelease(c.Version()); ok && have.before(since) {
		return
	}
	if warning := fmt.Sprintf("299 - %q", message); !slices.Contains(w.Header().Values("Warning"), warning) {
		w.Header().Add("Warning", warning)
	}
}

// release is a minor release of Kubernetes.
type release struct{ major, minor int }

func (r release) before(other release) bool {
	return r.major < other.major || r.major == other.major && r.minor < other.minor
}

func (r release) String() string { return fmt.Sprintf("v%d.%d", r.major, r.minor) }

// deprecation returns an API server's deprecation message for a kind, and the release since which it is deprecated.
// The message is "" if the kind is not deprecated.
func deprecation(gvk schema.GroupVersionKind) (message string, since release) {
	obj, err := scheme.Scheme.New(gvk)
	if err != nil {
		return "", since
	}
	if d, ok := obj.(interface{ APILifecycleDeprecated() (int, int) }); ok {
		since.major, since.minor = d.APILifecycleDeprecated()
	}
	if since == (release{}) {
		return "", since
	}
	message = fmt.Sprintf("%s %s is deprecated in %s+", gvk.GroupVersion(), gvk.Kind, since)
	if r, ok := obj.(interface{ APILifecycleRemoved() (int, int) }); ok {
		if major, minor := r.APILifecycleRemoved(); major != 0 || minor != 0 {
			message += fmt.Sprintf(", unavailable in %s+", release{major, minor})
		}
	}
	if r, ok := obj.(interface {
		APILifecycleReplacement() schema.GroupVersionKind
	}); ok {
		if other := r.APILifecycleReplacement(); !other.Empty() {
			message += fmt.Sprintf("; use %s %s", other.GroupVersion(), other.Kind)
		}
	}
	return message, since
}

// parseRelease parses the release in the /version document of an API server.
func parseRelease(version []byte) (r release, ok bool) {
	var info struct{ Major, Minor string }
	if json.Unmarshal(version, &info) != nil {
		return r, false
	}
	digits := 0
	for digits < len(info.Minor) && info.Minor[digits] >= '0' && info.Minor[digits] <= '9' {
		digits++ // some servers say "30+"
	}
	major, err := strconv.Atoi(info.Major)
	if err != nil {
		return r, false
	}
	minor, err := strconv.Atoi(info.Minor[:digits])
	return release{major, minor}, err == nil
}
