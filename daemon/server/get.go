package server

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/object"
)

// get answers with one object.
func (s *Server) get(w http.ResponseWriter, req *request, v *view) error {
	at := v.places[0]
	if !req.fromNow() {
		if err := s.waitFresh(req, v); err != nil {
			return err
		}
		if err := s.stillAllowed(req, v); err != nil {
			return err
		}
	}
	e, ok := (*fleet.Entry)(nil), false
	if req.isPast() {
		var err error
		if e, err = s.getPast(w, req, v); err != nil {
			return err
		}
		ok = e != nil
	} else {
		e, ok = at.res.Entry(object.NewKey(req.namespace, req.name))
	}
	if !ok || at.res.Info().Namespaced != (req.namespace != "") {
		return errNotFound(req.groupResource(), req.askedName)
	}
	held := s.memory.open(clientOf(req.http))
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

// single renders the complete answer for one object or its scale.
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
