package server

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/store"
)

// watchEnd is a reason for which the server ends a watch. Each says how the client is told, so that none can be
// forgotten: a client that takes an end for a fault of the moment goes on from the newest version that it knows, and
// if it was not sent everything up to there, it never gets the rest.
type watchEnd struct {
	message string
	// expired ends the watch with 410: the client has to list again. Without it the watch just ends, as at its timeout:
	// the client has everything up to its version, and whatever is wrong, its next request is told.
	expired bool
}

func (e *watchEnd) Error() string { return e.message }

// The reasons for which the server ends a watch, besides its timeout and a shutdown, which need no word.
var (
	errTooSlow = &watchEnd{"the watch was read too slowly and has been ended; list again", true}
	errSetBack = &watchEnd{"the history of the cluster was set back; list again", true}
	errMerged  = &watchEnd{"changes came so fast that some were merged, which no version can tell; list again", true}
	// errUnserved needs no list: the next request is told that the resource is not there.
	errUnserved = &watchEnd{"the resource is no longer mirrored", false}
)

// endStatus returns what the last event of a watch says, nil if there is none.
func endStatus(err error, t *target) *metav1.Status {
	var status metav1.Status
	if end := (*watchEnd)(nil); err == nil || errors.As(err, &end) && !end.expired {
		return nil
	} else if end != nil || errors.Is(err, store.ErrGone) {
		status = apierrors.NewResourceExpired(err.Error()).ErrStatus
	} else {
		status = statusOf(err, t)
	}
	status.Kind, status.APIVersion = "Status", "v1"
	return &status
}
