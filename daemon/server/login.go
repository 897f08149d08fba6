package server

import (
	"net/http"
	"strings"
)

// isLoginPath reports whether a path is one at which users log in on the page.
func isLoginPath(path string) bool { return path == "/login" || strings.HasPrefix(path, "/login/") }

// login answers a request for a path of Options.Login. Without one, the page is told so.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.opts.Login != nil:
		s.opts.Login.ServeHTTP(w, r)
	case r.URL.Path == "/login/session" && r.Method == http.MethodGet:
		w.Header().Set("Cache-Control", "no-store")
		writeBody(w, http.StatusOK, jsonType, []byte("{}\n"))
	default:
		http.NotFound(w, r)
	}
}
