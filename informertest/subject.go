package informertest

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/object"
)

// Event is what a subject tells a handler: a change of one pod.
type Event = object.Event[*corev1.Pod]

// Health is what a subject can say of itself at any time.
type Health struct {
	// State is "listing", "streaming", "retrying", "not served", "polling" or "stopped".
	State string
	// Version is how far the server's history was read.
	Version object.Version
	// LastWord is when the server last said anything.
	LastWord time.Time
	// Problems counts everything that went wrong.
	Problems uint64
}
