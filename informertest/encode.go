package informertest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	mediaJSON     = runtime.ContentTypeJSON
	mediaProtobuf = runtime.ContentTypeProtobuf
)

// protobufMagic is the prefix of every protobuf document of the API server.
var protobufMagic = []byte{'k', '8', 's', 0}

// form is how a response represents objects.
type form struct {
	protobuf bool
	// metadata asks for PartialObjectMetadata in place of the object.
	metadata bool
}

func (f form) mediaType() string {
	if f.protobuf {
		return mediaProtobuf
	}
	return mediaJSON
}

// kindOf returns the apiVersion and kind that objects of a resource carry in this form.
func (f form) kindOf(r *resource) (apiVersion, kind string) {
	if f.metadata {
		return "meta.k8s.io/v1", "PartialObjectMetadata"
	}
	return r.gvr.GroupVersion().String(), r.kind
}

// splice puts apiVersion and kind before an object's other fields.
func splice(apiVersion, kind string, body []byte) []byte {
	head, _ := json.Marshal(metav1.TypeMeta{APIVersion: apiVersion, Kind: kind})
	if bytes.Equal(body, []byte("{}")) {
		return head
	}
	out := make([]byte, 0, len(head)+len(body))
	out = append(out, head[:len(head)-1]...)
	out = append(out, ',')
	return append(out, body[1:]...)
}

// envelope wraps a protobuf message as a whole document.
func envelope(apiVersion, kind string, message []byte) []byte {
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: message}
	return append(bytes.Clone(protobufMagic), marshal(&u)...)
}

// document encodes the object as a whole document, as in a GET and in a watch event.
func (e *entry) document(f form) []byte {
	apiVersion, kind := f.kindOf(e.resource)
	if f.protobuf {
		return envelope(apiVersion, kind, e.item(f))
	}
	if f.metadata {
		raw, _ := e.metadata()
		return splice(apiVersion, kind, metadataOnly(raw))
	}
	return splice(apiVersion, kind, e.body)
}

// item encodes the object as an item of a list: built-in kinds carry neither apiVersion nor kind there.
func (e *entry) item(f form) []byte {
	switch {
	case f.protobuf && f.metadata:
		_, m := e.metadata()
		return marshal(&metav1.PartialObjectMetadata{ObjectMeta: m})
	case f.protobuf:
		return e.message()
	case f.metadata || !e.resource.typed:
		return e.document(f)
	}
	return e.body
}

func metadataOnly(raw json.RawMessage) []byte {
	return append(append([]byte(`{"metadata":`), raw...), '}')
}

// undecodable returns a document whose name and version can still be read but which does not decode to an object of
// any kind.
func (e *entry) undecodable(f form, whole bool) []byte {
	if f.protobuf {
		// The message ends in an unfinished varint, so every decoder fails.
		message := append(bytes.Clone(e.item(f)), 0xff)
		if !whole {
			return message
		}
		apiVersion, kind := f.kindOf(e.resource)
		return envelope(apiVersion, kind, message)
	}
	raw, _ := e.metadata()
	return append(append([]byte(`{"kind":7,"apiVersion":7,"spec":"broken","status":"broken","data":"broken","metadata":`),
		raw...), '}')
}

// listPage is the content of one list response.
type listPage struct {
	resource *resource
	meta     metav1.ListMeta
	items    []*entry
	// broken is the 1-based number of the item that is sent undecodable; 0 for none.
	broken int
}

func (p *listPage) kind(f form) (apiVersion, kind string) {
	apiVersion, kind = f.kindOf(p.resource)
	return apiVersion, kind + "List"
}

func (p *listPage) item(f form, i int) []byte {
	if i+1 == p.broken || p.items[i].corrupt {
		return p.items[i].undecodable(f, false)
	}
	return p.items[i].item(f)
}

// write streams the page, so that the encoded page is never whole in memory.
func (p *listPage) write(w io.Writer, f form) error {
	if f.protobuf {
		return p.writeProtobuf(w, f)
	}
	return p.writeJSON(w, f)
}

func (p *listPage) writeJSON(w io.Writer, f form) error {
	apiVersion, kind := p.kind(f)
	listMeta, err := json.Marshal(p.meta)
	if err != nil {
		return err
	}
	head := splice(apiVersion, kind, append(append([]byte(`{"metadata":`), listMeta...), `,"items":[`...))
	if _, err := w.Write(head); err != nil {
		return err
	}
	for i := range p.items {
		item := p.item(f, i)
		if i > 0 {
			item = append([]byte{','}, item...)
		}
		if _, err := w.Write(item); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "]}\n")
	return err
}

// Field numbers and wire types of runtime.Unknown and of every list message.
const (
	tagTypeMeta        = 1<<3 | 2
	tagRaw             = 2<<3 | 2
	tagContentEncoding = 3<<3 | 2
	tagContentType     = 4<<3 | 2
	tagListMeta        = 1<<3 | 2
	tagListItem        = 2<<3 | 2
)

func (p *listPage) writeProtobuf(w io.Writer, f form) error {
	apiVersion, kind := p.kind(f)
	typeMeta := marshal(&runtime.TypeMeta{APIVersion: apiVersion, Kind: kind})
	listMeta := marshal(&p.meta)
	size := fieldSize(len(listMeta))
	for i := range p.items {
		size += fieldSize(len(p.item(f, i)))
	}
	head := appendField(bytes.Clone(protobufMagic), tagTypeMeta, typeMeta)
	head = binary.AppendUvarint(append(head, tagRaw), uint64(size))
	head = appendField(head, tagListMeta, listMeta)
	if _, err := w.Write(head); err != nil {
		return err
	}
	for i := range p.items {
		if _, err := w.Write(appendField(nil, tagListItem, p.item(f, i))); err != nil {
			return err
		}
	}
	_, err := w.Write([]byte{tagContentEncoding, 0, tagContentType, 0})
	return err
}

func appendField(b []byte, tag byte, value []byte) []byte {
	return append(binary.AppendUvarint(append(b, tag), uint64(len(value))), value...)
}

func fieldSize(length int) int {
	return 1 + len(binary.AppendUvarint(nil, uint64(length))) + length
}

// frame encodes one watch event.
func (f form) frame(eventType string, document []byte) []byte {
	if f.protobuf {
		return lengthPrefixed(marshal(&metav1.WatchEvent{Type: eventType, Object: runtime.RawExtension{Raw: document}}))
	}
	out := make([]byte, 0, len(document)+40)
	out = append(out, `{"type":"`+eventType+`","object":`...)
	out = append(out, document...)
	return append(out, "}\n"...)
}

// garbageFrame returns bytes about as long as a frame that cannot be decoded as one.
func (f form) garbageFrame() []byte {
	if f.protobuf {
		return lengthPrefixed(bytes.Repeat([]byte{0xff}, 32))
	}
	return []byte("{\"type\":\"ADDED\",\"object\":{\"metadata\"\x00]]\n")
}

func lengthPrefixed(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// statusDocument encodes a Status for an error response or event.
func (f form) statusDocument(st metav1.Status) []byte {
	if f.protobuf {
		return envelope("v1", "Status", marshal(&st))
	}
	st.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	b, _ := json.Marshal(st)
	return b
}
