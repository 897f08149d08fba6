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

// index is an index function with its identity.
type index[T any] struct {
	id     string
	values store.IndexFunc[T]
}

// identity returns the name of a function that is declared at package level, and "" for any other. Go cannot compare
// functions, and one function literal can be many closures with different captured variables: only a declared function
// is known to be equal to itself.
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

// AddIndex adds an index, before or after the start. When it returns, the stored objects are indexed. All users of the
// informer can use the index. A declared function may be added again under the same name. Another function under a name
// that is in use is an error, and so is a closure, because closures cannot be compared. The function must not use the
// factory, a lister or a handle: see informer.Indexes.
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
	// The index is added to all parts or to none: the parts are locked together, always in the order of their
	// namespaces.
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

// errIndexTaken is wrapped by the error of AddIndex if the name is in use for another function.
var errIndexTaken = errors.New("another user has an index of this name with another function; " +
	"share one function that is declared at package level (closures cannot be compared), or choose another name")

// addIndex adds an index whose name is free or has the same function. The lock is held.
func (s *shared[T]) addIndex(name string, x index[T]) error {
	if _, have := s.indexes[name]; have {
		return nil
	}
	err := s.onRunnable(func(inf *informer.Informer[T]) error {
		return inf.AddIndexes(informer.Indexes[T]{name: x.values})
	})
	if err == nil {
		s.indexes[name] = x
	}
	return err
}
