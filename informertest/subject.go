package informertest

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/object"
)

// Event is what a subject sends to a handler: a change of one pod.
type Event = object.Event[*corev1.Pod]

// Health is the state that a subject reports at any time.
type Health struct {
	// State is "listing", "streaming", "retrying", "not served", "polling" or "stopped".
	State string
	// Version is the version that the subject has read the server's history up to.
	Version object.Version
	// LastEvent is when the server last sent anything.
	LastEvent time.Time
	// Problems counts all problems.
	Problems uint64
}
