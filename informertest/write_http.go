package informertest

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// maxBody bounds the body of a write, as the API server does.
const maxBody = 3 << 20

func (c *call) readBody() ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(c.r.Body, maxBody+1))
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("reading the body: %v", err))
	}
	if len(b) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	return b, nil
}

// readObject decodes the body of a create or update.
func (c *call) readObject() (metav1.Object, error) {
	b, err := c.readBody()
	if err != nil {
		return nil, err
	}
	var m metav1.Object
	mediaType, _, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	switch {
	case mediaType == mediaProtobuf && c.res.typed:
		gvk := c.res.gvk()
		obj, _, derr := scheme.Codecs.UniversalDeserializer().Decode(b, &gvk, nil)
		if derr != nil {
			return nil, apierrors.NewBadRequest(derr.Error())
		}
		m, err = meta.Accessor(obj)
	case mediaType == mediaJSON || mediaType == "":
		m, err = c.res.parse(b)
	default:
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType,
			Reason:  metav1.StatusReasonUnsupportedMediaType,
			Message: fmt.Sprintf("the body of the request was in an unknown format: %q", mediaType),
		}}
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if m.GetNamespace() == "" {
		m.SetNamespace(c.req.Namespace)
	} else if m.GetNamespace() != c.req.Namespace {
		return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on " +
			"the request")
	}
	return m, nil
}

func (c *call) create() error {
	m, err := c.readObject()
	if err != nil {
		return err
	}
	c.s.mu.Lock()
	e, err := c.s.create(c.res, m)
	c.s.mu.Unlock()
	if err != nil {
		return err
	}
	c.writeDocument(http.StatusCreated, e.document(c.form))
	return nil
}

func (c *call) update() error {
	m, err := c.readObject()
	if err != nil {
		return err
	}
	if m.GetName() != c.req.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)",
			m.GetName(), c.req.Name))
	}
	c.s.mu.Lock()
	e, err := c.replace(m)
	c.s.mu.Unlock()
	if err != nil {
		return err
	}
	c.writeDocument(http.StatusOK, e.document(c.form))
	return nil
}

// replace performs an update of the whole object, or of its status only. The lock is held.
func (c *call) replace(m metav1.Object) (*entry, error) {
	if c.req.Subresource == "" {
		return c.s.update(c.res, m)
	}
	old := c.s.history.at(c.res, c.key(), c.s.history.version)
	if old == nil {
		return nil, notFound(c.res, c.req.Name)
	}
	stored, err := old.unstructured()
	if err != nil {
		return nil, err
	}
	body, err := bodyOf(m)
	if err != nil {
		return nil, err
	}
	var sent struct {
		Status any `json:"status"`
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return nil, err
	}
	if sent.Status == nil {
		unstructured.RemoveNestedField(stored.Object, "status")
	} else {
		stored.Object["status"] = sent.Status
	}
	stored.SetResourceVersion(m.GetResourceVersion())
	whole, err := c.res.own(stored)
	if err != nil {
		return nil, err
	}
	return c.s.update(c.res, whole)
}

func (c *call) deleteOptions() (metav1.DeleteOptions, error) {
	var o metav1.DeleteOptions
	b, err := c.readBody()
	if err != nil || len(b) == 0 {
		return o, err
	}
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(b, nil, &o); err != nil {
		return o, apierrors.NewBadRequest(err.Error())
	}
	return o, nil
}

func (c *call) delete() error {
	o, err := c.deleteOptions()
	if err != nil {
		return err
	}
	p := metav1.Preconditions{}
	if o.Preconditions != nil {
		p = *o.Preconditions
	}
	c.s.mu.Lock()
	e, err := c.s.delete(c.res, c.key(), deref(p.UID), deref(p.ResourceVersion))
	c.s.mu.Unlock()
	if err != nil {
		return err
	}
	if e.deleting {
		c.writeDocument(http.StatusOK, e.document(c.form))
		return nil
	}
	c.writeDocument(http.StatusOK, form{protobuf: c.form.protobuf}.statusDocument(metav1.Status{
		Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: e.name, Group: c.res.gvr.Group, Kind: c.res.gvr.Resource,
			UID: types.UID(e.uid)},
	}))
	return nil
}

func (c *call) deleteCollection() error {
	sel, err := c.selection()
	if err != nil {
		return err
	}
	p, err := c.deleteMatching(sel)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", c.form.mediaType())
	c.w.WriteHeader(http.StatusOK)
	return p.write(c.w, c.form)
}

func (c *call) deleteMatching(sel selection) (*listPage, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	p := &listPage{resource: c.res}
	for _, e := range c.s.history.list(c.res, c.s.history.version) {
		if !sel.matches(e) {
			continue
		}
		final, err := c.s.delete(c.res, e.key, "", "")
		if err != nil {
			return nil, err
		}
		p.items = append(p.items, final)
	}
	p.meta.ResourceVersion = string(formatVersion(c.s.history.version))
	return p, nil
}

func deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}
