package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// writeObject answers with a complete document.
func writeObject(w http.ResponseWriter, r *http.Request, body []byte) error {
	if pretty(r) {
		var out bytes.Buffer
		if err := json.Indent(&out, bytes.TrimRight(body, "\n"), "", "  "); err != nil {
			return fmt.Errorf("indent the answer: %w", err)
		}
		body = out.Bytes()
	}
	writeBody(w, http.StatusOK, jsonType, body)
	return nil
}

// writeJSON answers with one small document.
func writeJSON(w http.ResponseWriter, code int, v any) { writeAs(w, code, jsonType, v) }

func writeAs(w http.ResponseWriter, code int, contentType string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "encode the answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	writeBody(w, code, contentType, append(b, '\n'))
}

func writeBody(w http.ResponseWriter, code int, contentType string, b []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-cache, private")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(code)
	newDeadlineWriter(w).Write(b) // an error means that the client is gone
}

// pretty reports whether the answer is to be indented for a person, by the same rules as those of an API server.
func pretty(r *http.Request) bool {
	switch r.URL.Query().Get("pretty") {
	case "":
		agent := r.UserAgent()
		return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget")
	case "0", "false":
		return false
	}
	return true
}
