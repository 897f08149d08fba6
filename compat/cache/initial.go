package cache

// initialSync decides when a queue has synced: when all items of its first Replace
// were processed, or when something else was queued before any Replace. The queue's
// lock protects it.
type initialSync struct {
	decided bool
	left    int
	done    bool
	synced  chan struct{}
}

func newInitialSync() initialSync { return initialSync{synced: make(chan struct{})} }

// begin sets the number of initial items. Only the first call counts.
func (s *initialSync) begin(n int) {
	if s.decided {
		return
	}
	s.decided, s.left = true, n
	s.check()
}

// processed counts items that were processed.
func (s *initialSync) processed(n int) {
	if s.left > 0 {
		s.left = max(0, s.left-n)
		s.check()
	}
}

func (s *initialSync) check() {
	if s.left == 0 && !s.done {
		s.done = true
		close(s.synced)
	}
}
