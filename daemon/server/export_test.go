package server

// Idle reports whether no request holds a turn, memory or a watch.
func (s *Server) Idle() bool {
	return s.work.empty() && s.memory.empty() && s.watches.empty() && s.past.empty()
}

func (q *quota) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used == 0 && len(q.shares) == 0
}

// LimitPast sets how many bytes states of the past may have.
func (s *Server) LimitPast(bytes int64) { s.past = newQuota("bytes of states of the past", bytes) }

// FleetCatalog returns the only catalog of several clusters that is kept for requests; nil if there is none.
func (s *Server) FleetCatalog() any {
	s.served.mu.Lock()
	defer s.served.mu.Unlock()
	if len(s.served.unions) != 1 {
		return nil
	}
	return s.served.unions[0].catalog
}
