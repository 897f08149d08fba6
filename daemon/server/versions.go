package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/object"
)

// waitVersion waits a few seconds until the mirror has reached a version.
func waitVersion(ctx context.Context, res *fleet.Resource, v object.Version) error {
	if err := checkVersion(v, res.Snapshot().Version()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := res.WaitVersion(ctx, v); err != nil {
		return tooLarge(v, res.Snapshot().Version())
	}
	return nil
}

// checkVersion refuses a version that is not a number if the mirror's versions are numbers. It will never be reached,
// so the client must not retry.
func checkVersion(v, own object.Version) error {
	if _, err := strconv.ParseUint(string(own), 10, 64); err != nil {
		return nil
	}
	if _, err := strconv.ParseUint(string(v), 10, 64); err != nil {
		return badRequest("the resource version %q is not a number", clip(string(v)))
	}
	return nil
}

// waitFresh waits until the view has reached the version of the request.
func (s *Server) waitFresh(req *request, v *view) error {
	version := object.Version(req.ResourceVersion)
	if req.fleet {
		return s.fleetHubs.checkFresh(version, req.ResourceVersionMatch == metav1.ResourceVersionMatchExact)
	}
	return waitVersion(req.context(), v.places[0].res, version)
}

// checkExact refuses a list of one cluster at an exact version that is not the mirror's. For /fleet, waitFresh does.
func checkExact(req *request, have object.Version) error {
	want := object.Version(req.ResourceVersion)
	if req.fleet || req.ResourceVersionMatch != metav1.ResourceVersionMatchExact || req.Continue != "" || have == want {
		return nil
	}
	return apierrors.NewResourceExpired(
		fmt.Sprintf("The provided resource version is not available: %s; the mirror has reached %s", want, have))
}

// splitToken splits a continue token of /fleet into the engine's token and the version of the first page.
func splitToken(token string) (inner string, version uint64, err error) {
	inner, text, _ := strings.Cut(token, ".")
	if version, err = strconv.ParseUint(text, 10, 64); err != nil {
		return "", 0, apierrors.NewBadRequest("continue key is not valid: it is not from a list of all clusters")
	}
	return inner, version, nil
}

// fleetMoment is the version of the fleet when a request began, taken before checking which clusters are ready and
// before any snapshot: all changes up to it are in the snapshots, and all later changes are sent to watches.
type fleetMoment struct {
	hub     *fleetWatchHub
	version uint64
	since   uint64 // the version since which the user is shown the same sets; 0 if that does not matter
}

// of returns the version to show for an object.
func (m *fleetMoment) of(cluster string, key object.Key) string {
	return m.hub.version(cluster, key, m.version)
}
