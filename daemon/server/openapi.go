package server

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"github.com/munnerz/goautoneg"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// serveOpenAPI answers with an OpenAPI document of the first cluster that has it.
func (s *Server) serveOpenAPI(w http.ResponseWriter, r *http.Request, t *target, clusters []*fleet.Cluster) {
	var awaited *fleet.Cluster
	for _, c := range clusters {
		described := c.Described() // read first: a document that arrives now is found by OpenAPI
		if body, contentType, ok := c.OpenAPI(t.rest); ok {
			s.writeOpenAPI(w, r, t, body, contentType)
			return
		}
		if !described {
			awaited = c
		}
	}
	if awaited == nil {
		http.NotFound(w, r)
		return
	}
	fail(w, r, unavailable(fmt.Errorf("the OpenAPI documents of cluster %q have not been read yet", awaited.Name())), t)
}

// writeOpenAPI answers with a document. That of version 2 is mirrored as protobuf, which kubectl and client-go ask for,
// and is converted to JSON for clients that do not, such as Headlamp.
func (s *Server) writeOpenAPI(w http.ResponseWriter, r *http.Request, t *target, body []byte, contentType string) {
	if t.rest == "/openapi/v2" {
		w.Header().Add("Vary", "Accept")
		asJSON, asProtobuf := acceptsOpenAPIV2(r.Header.Get("Accept"))
		var err error
		switch {
		case asProtobuf:
		case asJSON:
			contentType = jsonType
			body, err = s.openAPIV2AsJSON(r, body)
		default:
			err = errNotAcceptable(jsonType + ", " + contentType)
		}
		if err != nil {
			fail(w, r, err, t)
			return
		}
	}
	writeBody(w, http.StatusOK, contentType, body)
}

// acceptsOpenAPIV2 reports which encoding of the document of version 2 an Accept header prefers. Both results are false
// if it accepts neither. Protobuf has two names, and a server may answer with the other one.
func acceptsOpenAPIV2(accept string) (asJSON, asProtobuf bool) {
	if accept == "" {
		return true, false
	}
	for _, c := range goautoneg.ParseAccept(accept) {
		switch {
		case c.Type == "*" && c.SubType == "*", c.Type == "application" && (c.SubType == "*" || c.SubType == "json"):
			return true, false
		case c.Type == "application" && strings.HasPrefix(c.SubType, "com.github.proto-openapi.spec.v2"):
			return false, true
		}
	}
	return false, false
}

// openAPIJSON has the last document that was converted to JSON.
type openAPIJSON struct {
	mu   sync.Mutex
	of   [sha256.Size]byte // hash of the protobuf
	body []byte
}

// openAPIV2AsJSON converts a document of version 2 to JSON. That takes as long as a scan of many objects, and so it
// takes turns with other such work.
func (s *Server) openAPIV2AsJSON(r *http.Request, body []byte) ([]byte, error) {
	work, err := s.work.begin(r.Context(), clientOf(r))
	if err != nil {
		return nil, err
	}
	defer work.end()
	hash, last := sha256.Sum256(body), &s.openAPI
	last.mu.Lock()
	defer last.mu.Unlock()
	if last.of == hash {
		return last.body, nil
	}
	var doc openapi_v2.Document
	if err := proto.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("decode the OpenAPI document: %w", err)
	}
	var swagger spec.Swagger
	if _, err := swagger.FromGnostic(&doc); err != nil {
		return nil, fmt.Errorf("convert the OpenAPI document: %w", err)
	}
	converted, err := swagger.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode the OpenAPI document: %w", err)
	}
	last.of, last.body = hash, converted
	return converted, nil
}
