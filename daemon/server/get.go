package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server/table"
	"github.com/mirador-k8s/mirador/object"
)

// errNoVersion says that a resource is not there, and in which version it is if there is another: a mirror holds one
// version of each and converts none, because most conversions lose something.
func (s *Server) errNoVersion(t *target, clusters ...*fleet.Cluster) error {
	for _, c := range clusters {
		if version := s.served.of(c).otherVersion(t.gvr()); version != "" {
			return &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
				Message: fmt.Sprintf("%s of cluster %q are mirrored in version %s, and not in %s: ask for %s, or ask the cluster itself",
					t.groupResource(), c.Name(), version, clip(t.version), schema.GroupVersion{Group: t.group, Version: version}),
				Details: &metav1.StatusDetails{Group: t.group, Kind: t.resource},
			}}
		}
	}
	if t.groupResource() == (schema.GroupResource{Resource: "secrets"}) {
		st := apierrors.NewNotFound(t.groupResource(), t.name).ErrStatus
		st.Message = "secrets are not mirrored: ask the cluster itself, or have the daemon started with --secrets"
		return &apierrors.StatusError{ErrStatus: st}
	}
	return errNoResource()
}

// errUnsynced says why a resource cannot be answered for. One that the cluster does not let the mirror list does not
// come by waiting for it.
func errUnsynced(c *fleet.Cluster, res *fleet.Resource, t *target) error {
	if err := res.Health().Reflector.Err; apierrors.IsForbidden(err) {
		return apierrors.NewForbidden(t.groupResource(), t.name,
			fmt.Errorf("cluster %q does not let the mirror list them; allow it there, or exclude the resource: %w", c.Name(), err))
	}
	return unavailable(fmt.Errorf("%s of cluster %q are not mirrored completely yet: %s", t.resource, c.Name(), state(res)))
}

// state says in a few words what a resource is doing.
func state(res *fleet.Resource) string {
	h := res.Health()
	if err := h.Reflector.Err; err != nil {
		return fmt.Sprintf("%s, because: %v", h.Reflector.State, err)
	}
	return h.Reflector.State.String()
}

// How long a source may say nothing before its readers are warned: while it is followed, longer than a
// watch lasts, since not every resource has bookmarks; else not long.
const (
	staleFollowed = 12 * time.Minute
	staleLost     = time.Minute
)

// warnStale tells a reader that what he gets may be old.
func warnStale(w http.ResponseWriter, c *fleet.Cluster, res *fleet.Resource) {
	h, after := res.Health(), staleLost
	if h.Reflector.State.String() == "streaming" {
		after = staleFollowed
	}
	if age := h.Age(time.Now()); age > after {
		warn(w, fmt.Sprintf("cluster %s has said nothing about %s for %s: this may be out of date", c.Name(), res.GVR().Resource, age.Round(time.Second)))
	}
}

// printer finds the columns of a resource: its own, which its definition names, or the built-in ones.
func (s *Server) printer(cluster string, res *fleet.Resource) (p table.Printer, own bool) {
	if p := s.customPrinter(cluster, res); p != nil {
		return p, true
	}
	return table.For(res.GVK()), false
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// definition is what is read of a custom resource's definition.
type definition struct {
	Spec struct {
		Versions []struct {
			Name                     string          `json:"name"`
			AdditionalPrinterColumns json.RawMessage `json:"additionalPrinterColumns"`
		} `json:"versions"`
	} `json:"spec"`
}

// definition finds the definition of a custom resource, which is mirrored like everything else; nil
// where the resource is none.
func (s *Server) definition(cluster string, res *fleet.Resource) *fleet.Entry {
	c, ok := s.fleet.Cluster(cluster)
	if !ok {
		return nil
	}
	defs, ok := c.Resource(definitions)
	if !ok {
		return nil
	}
	gvr := res.GVR()
	e, _ := defs.Entry(object.NewKey("", gvr.Resource+"."+gvr.Group))
	return e
}

// customPrinter reads the columns off the definition.
func (s *Server) customPrinter(cluster string, res *fleet.Resource) table.Printer {
	e := s.definition(cluster, res)
	if e == nil {
		return nil
	}
	var d definition
	if json.Unmarshal(fleet.Bytes(e, nil), &d) != nil {
		return nil
	}
	for _, v := range d.Spec.Versions {
		if v.Name != res.GVR().Version {
			continue
		}
		var columns []table.Column
		if len(v.AdditionalPrinterColumns) > 0 && json.Unmarshal(v.AdditionalPrinterColumns, &columns) != nil {
			return nil
		}
		p, err := table.ForCRD(columns)
		if err != nil {
			p, err = table.ForCRD(nil) // as the server prints what it cannot make sense of
		}
		if err == nil {
			return p
		}
	}
	return nil
}

// get answers with one object.
func (s *Server) get(w http.ResponseWriter, req *request, v *view) error {
	at := v.places[0]
	if !req.fleet && !req.fromNow() {
		if err := waitVersion(req.context(), at.res, object.Version(req.ResourceVersion)); err != nil {
			return err
		}
	}
	e, ok := at.res.Entry(object.NewKey(req.namespace, req.name))
	if !ok || at.res.Info().Namespaced != (req.namespace != "") {
		return errNotFound(req.groupResource(), req.askedName)
	}
	held := s.memory.open(s.clientOf(req.http))
	defer held.close()
	if err := held.set(int64(e.Size)); err != nil {
		return err
	}
	body, err := single(s.renderer(req, v), req.subresource, at.cluster, e, v.versionOf(at.cluster, e))
	if err != nil {
		return err
	}
	return writeObject(w, req.http, body)
}

// single makes the whole answer for one object, or for its scale.
func single(render *renderer, subresource, cluster string, e *fleet.Entry, version string) (body []byte, err error) {
	if subresource == "scale" {
		return render.scale(cluster, e, version)
	}
	if render.form == asTable {
		if body, err = render.tableHead(nil, metav1.ListMeta{ResourceVersion: version}, true); err != nil {
			return nil, err
		}
		if body, err = render.item(body, cluster, e, version, false); err != nil {
			return nil, err
		}
		return append(body, "]}\n"...), nil
	}
	if body, err = render.item(nil, cluster, e, version, false); err != nil {
		return nil, err
	}
	return append(body, '\n'), nil
}

// writeObject answers with a document that is complete.
func writeObject(w http.ResponseWriter, r *http.Request, body []byte) error {
	if pretty(r) {
		var out bytes.Buffer
		if err := json.Indent(&out, bytes.TrimRight(body, "\n"), "", "  "); err != nil {
			return errors.Join(errors.New("print an answer for people"), err)
		}
		body = out.Bytes()
	}
	if r.Method == http.MethodHead {
		body = nil
	}
	writeBody(w, http.StatusOK, jsonType, body)
	return nil
}
