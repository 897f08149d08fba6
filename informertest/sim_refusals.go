package informertest

import "net/http"

// toggleWatches makes the server refuse every watch, or serve them again. Refusing also ends the open ones.
func (s *simulation) toggleWatches(k kind) {
	if s.noWatch != 0 {
		s.noWatch = 0
		return
	}
	s.noWatch, s.noWatchKind = http.StatusForbidden, k
	if k == watchUnsupported {
		s.noWatch = http.StatusMethodNotAllowed
	}
	s.cutWatches("watches are refused from now on")
}

// relist forces the subject to relist.
func (s *simulation) relist() {
	s.cutWatches("and its version expires")
	s.refusals = append(s.refusals, action{kind: goneWatch})
}

func (s *simulation) cutWatches(why string) {
	for _, ex := range s.exchanges {
		if ex.verb == "watch" && ex.answered && ex.end == nil && !ex.closed && ex.bad == "" {
			ex.cut(why)
		}
	}
}

// refusal returns the status with which the server answers a request while it refuses watches or its pages expire; 0
// for none.
func (s *simulation) refusal(ex *exchange) int {
	switch {
	case s.noWatch != 0 && ex.verb == "watch":
		s.countFault(s.noWatchKind)
		return s.noWatch
	case s.noPages && ex.more:
		s.countFault(expiringPages)
		return http.StatusGone
	}
	return 0
}
