package kube

import (
	"errors"
	"fmt"
	"mime"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/object"
)

const (
	protobufType = "application/vnd.kubernetes.protobuf"
	jsonType     = "application/json"
)

// typeMeta is an object's apiVersion and kind, as far as known.
type typeMeta struct{ apiVersion, kind string }

func (k typeMeta) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(k.apiVersion, k.kind)
}

// wire is one encoding of the API: protobuf or JSON.
type wire interface {
	// list parses one page of a list.
	list(in *inbox) pageReader
	// frames splits a watch into frames.
	frames(in *inbox) framer
	// event parses one frame of a watch.
	event(frame []byte) (event, error)
	// meta decodes only the metadata of an object.
	meta(raw []byte) (metav1.ObjectMeta, error)
	// status decodes the Status of an ERROR event or a failed request.
	status(kind typeMeta, raw []byte) (metav1.Status, error)
}

// wireFor returns the encoding of a response by its content type.
func wireFor(contentType string) (wire, error) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, fmt.Errorf("the answer's content type %q cannot be read: %w", contentType, err)
	}
	switch mediaType {
	case protobufType:
		return protobufWire{}, nil
	case jsonType:
		return jsonWire{}, nil
	}
	return nil, fmt.Errorf("the answer is %s and not from a Kubernetes API server; check that the config's Host is "+
		"one and that no proxy answers in its place", mediaType)
}

// pageReader returns the items of one page, each valid until the next call. If block is
// false, ok is false if the next item has not arrived yet. The end of a complete page is
// io.EOF.
type pageReader interface {
	next(block bool) (item []byte, ok bool, err error)
	head() *listHead
}

// framer returns the frames of a watch by the same rules. It returns io.EOF if the stream
// ends between two frames.
type framer interface {
	next(block bool) (frame []byte, ok bool, err error)
}

// listHead is the kind and the metadata of a page. In JSON they may follow the items.
type listHead struct {
	typeMeta
	version, cont string
	hasMeta       bool
	complete      bool // all items have been read
}

func (h *listHead) setMeta(version, cont string) {
	h.version, h.cont, h.hasMeta = version, cont, true
}

// item returns the kind of the list's items: the items of a PodList are Pods.
func (h *listHead) item() (typeMeta, error) {
	if h.kind == "" {
		return typeMeta{}, nil
	}
	kind, ok := strings.CutSuffix(h.kind, "List")
	if !ok || !plain(h.kind) || !plain(h.apiVersion) {
		return typeMeta{}, fmt.Errorf("the server answered with a %q and not with a list", h.kind)
	}
	if kind == "" { // a v1 List, whose items have their own kinds
		return typeMeta{}, nil
	}
	return typeMeta{h.apiVersion, kind}, nil
}

// plain reports whether s needs no escapes in a JSON string.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// partialKey returns the key of an object of whose name parts may be missing.
func partialKey(namespace, name string) object.Key {
	if name == "" {
		return ""
	}
	return object.NewKey(namespace, name)
}

// The events of a watch.
const (
	eventAdded    = "ADDED"
	eventModified = "MODIFIED"
	eventDeleted  = "DELETED"
	eventBookmark = "BOOKMARK"
	eventError    = "ERROR"
)

// event is a parsed frame of a watch. err is set if the object's envelope is malformed.
type event struct {
	typeMeta
	what   string
	object []byte
	err    error
}

// eventName returns an event type as a string, without allocating for the known ones.
func eventName(b []byte) string {
	switch string(b) {
	case eventAdded:
		return eventAdded
	case eventModified:
		return eventModified
	case eventDeleted:
		return eventDeleted
	case eventBookmark:
		return eventBookmark
	case eventError:
		return eventError
	}
	return strings.ToValidUTF8(string(b), "?")
}

var (
	errNoName    = errors.New("the object has no metadata.name")
	errWrongKind = errors.New("the server serves another kind here")
)
