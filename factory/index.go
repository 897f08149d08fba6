package factory

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/store"
)

// index is an index function and what tells it from others.
type index[T any] struct {
	id     string
	values store.IndexFunc[T]
}

// identity names a function declared at the top of a package; "" stands for any
// other. Go does not compare functions, and one place in the code is many closures,
// each with what it has captured: only a declared function is known to be the same
// as another mention of it.
func identity(f any) string {
	fn := runtime.FuncForPC(reflect.ValueOf(f).Pointer())
	if fn == nil {
		return ""
	}
	path := fn.Name()
	_, name, _ := strings.Cut(path[strings.LastIndex(path, "/")+1:], ".")
	if strings.ContainsAny(name, ".-[(") { // a closure, a method, an instantiation
		return ""
	}
	return path
}

// same reports whether two functions are known to be the same one.
func (x index[T]) same(other index[T]) bool { return x.id != "" && x.id == other.id }

// AddIndex adds an index, before or after the start; what is stored already is
// indexed when it returns. All users of the informer see it. Adding a declared
// function again under its name is fine; another function under a name that is
// taken is an error, and so is a closure, which may always be another. The function must not use
// the factory, a lister or a handle: see informer.IndexFunc.
func (h *Handle[T]) AddIndex(name string, values store.IndexFunc[T]) error {
	if values == nil {
		return fmt.Errorf("add index %q to %s: it has no function; give one that returns the values of an object",
			name, fullName(h.gvr))
	}
	id := identity(values)
	if store.IsByNamespace(values) {
		id = "by namespace" // no declared function has a name with spaces
	}
	return h.addIndex(name, index[T]{id: id, values: values})
}

func (h *Handle[T]) addIndex(name string, x index[T]) error {
	parts, err := h.use("add an index to")
	if err != nil {
		return err
	}
	if name == "" {
		return fmt.Errorf("add an index to %s: it needs a name", fullName(h.gvr))
	}
	// All or none: the parts are locked together, in the order of their namespaces,
	// which is the same for everybody.
	for _, p := range parts {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	for _, p := range parts {
		if have, taken := p.indexes[name]; taken && !have.same(x) {
			return fmt.Errorf("add index %q to %s: %w", name, p.name, errIndexTaken)
		}
	}
	for _, p := range parts {
		if err := p.addIndex(name, x); err != nil {
			return err
		}
	}
	return nil
}

// errIndexTaken is what adding an index wraps when its name is in use for another
// function.
var errIndexTaken = errors.New("another user has an index of this name with another function; " +
	"share one function declared at the top of a package (a closure may always be another), or choose another name")

// addIndex adds an index that is known not to clash. The lock is held.
func (s *shared[T]) addIndex(name string, x index[T]) error {
	if _, have := s.indexes[name]; have {
		return nil
	}
	err := s.alive(func(inf *informer.Informer[T]) error { return inf.AddIndex(name, x.values) })
	if err == nil {
		s.indexes[name] = x
	}
	return err
}
