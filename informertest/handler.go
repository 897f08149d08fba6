package informertest

import (
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ServeHTTP answers as an API server does.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	req := s.logRequest(r)
	fault := s.fault(r, req)
	w := &faultyWriter{ResponseWriter: rw, left: -1, onCode: func(code int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		req.Code = code
	}}
	if fault.CutAfterBytes > 0 {
		w.left = fault.CutAfterBytes
	}
	if fault.Delay > 0 && !sleep(r, fault.Delay) {
		panic(http.ErrAbortHandler)
	}
	if fault.Refuse {
		panic(http.ErrAbortHandler)
	}
	if st, ok := fault.status(req); ok && !(fault.AsEvent && req.Verb == "watch") {
		if st.Code == http.StatusNotFound && fault.Status == nil {
			http.NotFound(w, r)
			return
		}
		writeStatus(w, errorForm(r), st)
		return
	}
	if req.Resource.Resource == "" {
		s.serveDiscovery(w, r)
		return
	}
	s.serveResource(w, r, req, &fault)
}

// sleep waits for d and returns true, or returns false as soon as the client gives up.
func sleep(r *http.Request, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// call is one request for a resource.
type call struct {
	s     *Server
	w     *faultyWriter
	r     *http.Request
	req   *Request
	res   *resource
	form  form
	fault *Fault
}

func (s *Server) serveResource(w *faultyWriter, r *http.Request, req *Request, fault *Fault) {
	s.mu.Lock()
	res := s.resources[req.Resource]
	s.mu.Unlock()
	if res == nil || !res.namespaced && req.Namespace != "" || req.Subresource != "" && req.Subresource != "status" {
		http.NotFound(w, r)
		return
	}
	f, err := negotiate(r, res)
	if err != nil {
		writeError(w, r, err)
		return
	}
	c := &call{s: s, w: w, r: r, req: req, res: res, form: f, fault: fault}
	switch req.Verb {
	case "get":
		err = c.get()
	case "list":
		err = c.list()
	case "watch":
		err = c.watch()
	case "create":
		err = c.create()
	case "update":
		err = c.update()
	case "delete":
		err = c.delete()
	case "deletecollection":
		err = c.deleteCollection()
	default:
		err = apierrors.NewMethodNotSupported(res.gvr.GroupResource(), req.Verb)
	}
	if err != nil {
		writeError(w, r, err)
	}
}

func (c *call) get() error {
	least, err := versionOf(c.req.Query.Get("resourceVersion"))
	if err != nil {
		return err
	}
	c.s.mu.Lock()
	version, err := c.stale(c.s.history.version)
	e := c.s.history.at(c.res, c.key(), version)
	c.s.mu.Unlock()
	switch {
	case err != nil:
		return err
	case least > version:
		return tooLarge(least, version)
	case e == nil:
		return notFound(c.res, c.req.Name)
	}
	c.writeDocument(http.StatusOK, e.document(c.form))
	return nil
}

func (c *call) writeDocument(code int, document []byte) {
	c.w.Header().Set("Content-Type", c.form.mediaType())
	c.w.WriteHeader(code)
	c.w.Write(document)
}

// stale returns the version to read at, which a fault can make older. The lock is held.
func (c *call) stale(version uint64) (uint64, error) {
	if c.fault.StaleAt == "" {
		return version, nil
	}
	v, err := c.s.past(c.fault.StaleAt)
	if err != nil {
		return 0, apierrors.NewInternalError(err)
	}
	return min(v, version), nil
}

func invalidOptions(errs field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
}
