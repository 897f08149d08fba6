package server

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/store"
)

// watchEnd is a reason for which the server ends a watch. Each one says whether the client has to relist. Without a
// 410 a client continues from the newest version that it knows, and if it was not sent everything up to there, it
// never gets the rest.
type watchEnd struct {
	message string
	// expired ends the watch with 410: the client has to relist. Otherwise the watch just ends, as at its timeout: the
	// client has everything up to its version, and an error, if there is one, is the answer to its next request.
	expired bool
}

func (e *watchEnd) Error() string { return e.message }

// The reasons for which the server ends a watch, besides its timeout and a shutdown.
var (
	errTooSlow      = &watchEnd{"the watch was read too slowly and has been ended; list again", true}
	errHistoryReset = &watchEnd{"the history of the cluster was reset; list again", true}
	errMerged       = &watchEnd{"changes came so fast that some were coalesced out of order; list again", true}
	errRelisted     = &watchEnd{"the mirror has missed changes and has read the cluster again; list again", true}
	// errUnserved needs no relist: the answer to the next request is that the resource is not mirrored.
	errUnserved = &watchEnd{"the resource is no longer mirrored", false}
)

// endStatus returns the status in the last event of a watch, nil if there is none.
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
