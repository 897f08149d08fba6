package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// writeObject answers with a document that is complete.
func writeObject(w http.ResponseWriter, r *http.Request, body []byte) error {
	if pretty(r) {
		var out bytes.Buffer
		if err := json.Indent(&out, bytes.TrimRight(body, "\n"), "", "  "); err != nil {
			return errors.Join(errors.New("print an answer for people"), err)
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
		http.Error(w, "the answer cannot be encoded: "+err.Error(), http.StatusInternalServerError)
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
	newDeadlineWriter(w).Write(b) // whoever asked is gone, and nobody else wants to know
}

// pretty reports whether a person reads the answer.
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
