package informertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mirador-k8s/mirador/object"
)

// Create stores a new object and returns its version. The server assigns version, UID and creation time, and a name if
// generateName is set. obj is not changed; Get returns what was stored.
func (s *Server) Create(obj runtime.Object) (object.Version, error) {
	return s.write("creating", obj, s.create)
}

// Update stores a new state of an object and returns its version. If obj has a version, it must be the current one; an
// update that changes nothing writes nothing.
func (s *Server) Update(obj runtime.Object) (object.Version, error) {
	return s.write("updating", obj, s.update)
}

// Delete deletes the object of the same kind, namespace and name and returns the version of the deletion. If obj has a
// UID, it must be the stored one. An object with finalizers is only marked as deleted, and removed when an update
// clears them.
func (s *Server) Delete(obj runtime.Object) (object.Version, error) {
	return s.write("deleting", obj, func(r *resource, m metav1.Object) (*entry, error) {
		return s.delete(r, object.NewKey(m.GetNamespace(), m.GetName()), m.GetUID(), "")
	})
}

// write performs a write of an object that a test passes in.
func (s *Server) write(what string, obj runtime.Object,
	do func(*resource, metav1.Object) (*entry, error)) (object.Version, error) {
	if v := reflect.ValueOf(obj); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return "", fmt.Errorf("%s an object: it is nil", what)
	}
	gvk, err := kindOf(obj)
	if err != nil {
		return "", fmt.Errorf("%s %T: %w; set its apiVersion and kind", what, obj, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.byKind(gvk)
	if r == nil {
		return "", fmt.Errorf("%s %s: no resource of this kind is served; register it first", what, gvk)
	}
	m, err := r.own(obj)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", what, gvk, err)
	}
	e, err := do(r, m)
	if err != nil {
		return "", fmt.Errorf("%s %s %q: %w", what, gvk.Kind, object.NewKey(m.GetNamespace(), m.GetName()), err)
	}
	return formatVersion(e.version), nil
}

func kindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	if gvk := obj.GetObjectKind().GroupVersionKind(); gvk.Kind != "" && gvk.Version != "" {
		return gvk, nil
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return kinds[0], nil
}

// own returns a copy of an object in the type that the server keeps: the scheme's if it has one, unstructured
// otherwise.
func (r *resource) own(obj runtime.Object) (metav1.Object, error) {
	if _, isMap := obj.(*unstructured.Unstructured); isMap != r.typed {
		return meta.Accessor(obj.DeepCopyObject())
	}
	b, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return r.parse(b)
}

// parse decodes an object's JSON.
func (r *resource) parse(b []byte) (metav1.Object, error) {
	if !r.typed {
		u := &unstructured.Unstructured{}
		return u, u.UnmarshalJSON(b)
	}
	typed, err := scheme.Scheme.New(r.gvk())
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, typed); err != nil {
		return nil, err
	}
	return meta.Accessor(typed)
}

// create stores a new object. The lock is held.
func (s *Server) create(r *resource, m metav1.Object) (*entry, error) {
	if m.GetName() == "" && m.GetGenerateName() != "" {
		s.names++
		m.SetName(fmt.Sprintf("%s%05x", m.GetGenerateName(), s.names))
	}
	if err := r.checkName(m); err != nil {
		return nil, err
	}
	key := object.NewKey(m.GetNamespace(), m.GetName())
	if s.history.at(r, key, s.history.version) != nil {
		return nil, apierrors.NewAlreadyExists(r.gvr.GroupResource(), m.GetName())
	}
	s.uids++
	m.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", s.uids)))
	m.SetCreationTimestamp(metav1.NewTime(time.Now().UTC().Truncate(time.Second)))
	m.SetDeletionTimestamp(nil)
	return s.put(r, nil, m)
}

func (r *resource) checkName(m metav1.Object) error {
	switch {
	case m.GetName() == "":
		return apierrors.NewBadRequest("the object has no name; set metadata.name or generateName")
	case r.namespaced && m.GetNamespace() == "":
		return apierrors.NewBadRequest(fmt.Sprintf("%s are namespaced, but the object has no namespace", r.gvr.Resource))
	case !r.namespaced && m.GetNamespace() != "":
		return apierrors.NewBadRequest(fmt.Sprintf("%s are cluster-scoped, but the object has a namespace", r.gvr.Resource))
	}
	return nil
}

// put stores a state at the next version and wakes the watches. The lock is held.
func (s *Server) put(r *resource, old *entry, m metav1.Object) (*entry, error) {
	m.SetResourceVersion(strconv.FormatUint(s.history.next(), 10))
	e, err := newEntry(r, m)
	if err != nil {
		return nil, err
	}
	s.history.put(r, old, e)
	s.wakeWatches()
	return e, nil
}

// update stores a new state of an object. The lock is held.
func (s *Server) update(r *resource, m metav1.Object) (*entry, error) {
	if err := r.checkName(m); err != nil {
		return nil, err
	}
	old := s.history.at(r, object.NewKey(m.GetNamespace(), m.GetName()), s.history.version)
	if old == nil {
		return nil, notFound(r, m.GetName())
	}
	if v := m.GetResourceVersion(); v != "" && v != strconv.FormatUint(old.version, 10) {
		return nil, apierrors.NewConflict(r.gvr.GroupResource(), m.GetName(),
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	before, err := old.decode()
	if err != nil {
		return nil, err
	}
	if uid := m.GetUID(); uid != "" && uid != before.GetUID() {
		return nil, apierrors.NewConflict(r.gvr.GroupResource(), m.GetName(),
			fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s)", uid, before.GetUID()))
	}
	m.SetUID(before.GetUID())
	m.SetCreationTimestamp(before.GetCreationTimestamp())
	m.SetDeletionTimestamp(before.GetDeletionTimestamp())
	m.SetResourceVersion(before.GetResourceVersion())
	if body, err := bodyOf(m); err != nil {
		return nil, err
	} else if bytes.Equal(body, old.body) {
		return old, nil
	}
	if old.deleting && len(m.GetFinalizers()) == 0 {
		return s.remove(r, old)
	}
	return s.put(r, old, m)
}

// delete removes an object, or marks it as deleted if it has finalizers. The lock is held.
func (s *Server) delete(r *resource, key object.Key, uid types.UID, version string) (*entry, error) {
	old := s.history.at(r, key, s.history.version)
	if old == nil {
		return nil, notFound(r, key.Name())
	}
	if uid != "" && string(uid) != old.uid {
		return nil, apierrors.NewConflict(r.gvr.GroupResource(), old.name,
			fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s)", uid, old.uid))
	}
	if version != "" && version != strconv.FormatUint(old.version, 10) {
		return nil, apierrors.NewConflict(r.gvr.GroupResource(), old.name,
			fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%d)",
				version, old.version))
	}
	if !old.finalizers {
		return s.remove(r, old)
	}
	if old.deleting {
		return old, nil
	}
	m, err := old.decode()
	if err != nil {
		return nil, err
	}
	now := metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	m.SetDeletionTimestamp(&now)
	return s.put(r, old, m)
}

func (s *Server) remove(r *resource, old *entry) (*entry, error) {
	final, err := s.history.remove(r, old)
	if err != nil {
		return nil, err
	}
	s.wakeWatches()
	return final, nil
}
