package informertest

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request is one request that the server received.
type Request struct {
	// Verb is get, list, watch, create, update, delete, deletecollection or, for a request that names no resource
	// (discovery, the version), the HTTP method in lower case.
	Verb string
	// Resource is the requested resource; empty if the request names none.
	Resource    schema.GroupVersionResource
	Namespace   string
	Name        string
	Subresource string
	Path        string
	Query       url.Values
	Time        time.Time
	// Code is the HTTP status of the answer; 0 while there is none and if the connection was cut instead.
	Code int
}

// Requests returns all requests so far, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Request, len(s.requests))
	for i, r := range s.requests {
		out[i] = *r
	}
	return out
}

func (s *Server) logRequest(r *http.Request) *Request {
	rec := parseRequest(r)
	rec.Time = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, rec)
	return rec
}

// parseRequest parses a URL: /api/v1 or /apis/group/version, [namespaces/ns], resource, [name, [subresource]].
func parseRequest(r *http.Request) *Request {
	req := &Request{Verb: strings.ToLower(r.Method), Path: r.URL.Path, Query: r.URL.Query()}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var gv schema.GroupVersion
	switch {
	case len(parts) > 2 && parts[0] == "api":
		gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return req
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		req.Namespace, parts = parts[1], parts[2:]
	}
	req.Resource = gv.WithResource(parts[0])
	if len(parts) > 1 {
		req.Name = parts[1]
	}
	if len(parts) > 2 {
		req.Subresource = strings.Join(parts[2:], "/")
	}
	req.Verb = verbOf(r.Method, req)
	return req
}

func verbOf(method string, req *Request) string {
	switch method {
	case http.MethodGet:
		if w := req.Query.Get("watch"); w == "true" || w == "1" {
			return "watch"
		}
		if req.Name == "" {
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodDelete:
		if req.Name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return strings.ToLower(method)
}
