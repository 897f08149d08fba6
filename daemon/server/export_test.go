package server

// Idle reports whether no request holds a turn, memory or a watch.
func (s *Server) Idle() bool {
	return s.work.empty() && s.memory.empty() && s.watches.empty()
}

func (q *quota) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used == 0 && len(q.shares) == 0
}
