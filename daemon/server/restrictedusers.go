package server

import (
	"slices"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// noteShown remembers, also over a restart, what a user is shown, and returns the version from which on it is. If
// changed is true, that version is a new one, above all versions of answers that showed the user something else.
//
// A user may have several clients, and a change of rights reaches one after the other. What is remembered here is one
// for all of them, so every change begins a new version, also a change back: after a restart, clients that were sent an
// older version list again.
func (h *fleetWatchHub) noteShown(user uint64, in []fleet.ShownIn, changed bool) (since uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, known := h.restricted[user]
	changed = changed || len(was.in) == 0 || !sameShown(was.in, in)
	next := shownSet{in: mergeShown(slices.Clone(in), was.in), since: was.since}
	if !changed && len(next.in) == len(was.in) {
		return was.since
	}
	if changed {
		next.since = h.seq.Add(1)
	}
	if !known && len(h.restricted) >= maxRestricted {
		clear(h.restricted)
		h.shownSize = 0
		h.forgetOrder() // after a restart, all watches are 410
	}
	h.setShown(user, next)
	h.order.AddRestricted(next.of(user)) // before its version, so that the disk has none without what it shows
	if changed {
		h.begin(next.since)
	}
	return next.since
}

// setShown remembers what a user is shown. If that is too much, it forgets what others are shown, and that they are
// restricted it does not. The lock is held.
func (h *fleetWatchHub) setShown(user uint64, next shownSet) {
	if h.restricted == nil {
		h.restricted = map[uint64]shownSet{}
	}
	h.shownSize += len(next.in) - len(h.restricted[user].in)
	h.restricted[user] = next
	for other, shown := range h.restricted { // in random order
		if h.shownSize <= maxShownOnDisk {
			return
		}
		if other != user {
			h.shownSize -= len(shown.in)
			h.restricted[other] = shownSet{}
		}
	}
}

const (
	// maxRestricted is how many restricted users of a resource are remembered over a restart, and maxShownOnDisk of how
	// many clusters in all it is remembered what they are shown.
	maxRestricted  = 10_000
	maxShownOnDisk = 50_000
)

// lastShown returns what a user was shown last, in this process or before a restart, if that is remembered.
func (h *fleetWatchHub) lastShown(user uint64) (was shownSet, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was = h.restricted[user]
	return was, len(was.in) > 0
}

// wasRestricted reports whether a user was shown only a part, in this process or before a restart.
func (h *fleetWatchHub) wasRestricted(user uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, restricted := h.restricted[user]
	return restricted
}
