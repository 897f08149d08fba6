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
	// list takes apart one page of a list.
	list(in *inbox) pageReader
	// frames cuts a watch into its events.
	frames(in *inbox) framer
	// event takes apart one frame of a watch.
	event(frame []byte) (event, error)
	// meta reads the metadata of an object and nothing else.
	meta(raw []byte) (metav1.ObjectMeta, error)
	// status reads the Status that an ERROR event or a failed request carries.
	status(kind typeMeta, raw []byte) (metav1.Status, error)
}

// wireFor finds the encoding by the type that the server says it answered in.
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

// pageReader gives the items of one page, each in the buffer it arrived in:
// good until the next call. Where it must not block, ok is false when an item
// is not there yet. The end of a whole page is io.EOF.
type pageReader interface {
	next(block bool) (item []byte, ok bool, err error)
	head() *listHead
}

// framer gives the frames of a watch by the same rules. io.EOF is the end
// between two frames.
type framer interface {
	next(block bool) (frame []byte, ok bool, err error)
}

// listHead is what a page says beside its items; in JSON it may come after them.
type listHead struct {
	typeMeta
	version, cont string
	hasMeta       bool
	complete      bool // the items have been there, all of them
}

func (h *listHead) setMeta(version, cont string) {
	h.version, h.cont, h.hasMeta = version, cont, true
}

// item gives the kind of the list's items, by the rule that a list of Pods is a
// PodList.
func (h *listHead) item() (typeMeta, error) {
	if h.kind == "" {
		return typeMeta{}, nil
	}
	kind, ok := strings.CutSuffix(h.kind, "List")
	if !ok || !plain(h.kind) || !plain(h.apiVersion) {
		return typeMeta{}, fmt.Errorf("the server answered with a %q and not with a list", h.kind)
	}
	if kind == "" { // a v1 List: its items say what they are
		return typeMeta{}, nil
	}
	return typeMeta{h.apiVersion, kind}, nil
}

// plain reports whether s means the same inside the quotes of JSON.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// partialKey names an object as far as its name is known.
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

// event is one frame of a watch, taken apart. err says that the object's
// envelope is broken.
type event struct {
	typeMeta
	what   string
	object []byte
	err    error
}

// eventName gives the known names without making a string each time.
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
