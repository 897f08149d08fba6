package cache

import (
	"context"
	"fmt"
	"io"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// listPage is how many objects a list is asked for at a time.
const listPage = 500

// pages is an open list.
type pages struct {
	src  *lwSource
	ctx  context.Context
	opts metav1.ListOptions // of the next page
	page runtime.Object     // read but not handed on
	// items are what is left of the page before; inList says that they lie in its slice.
	items  []runtime.Object
	inList bool
	rv     string
	// first is how the list began.
	first metav1.ListOptions
}

// List asks for the first page.
func (s *lwSource) List(ctx context.Context, opts source.ListOptions) (_ source.Lister[any], err error) {
	defer contain(ctx, s.contains(), source.Unavailable, &err)
	p := &pages{src: s, ctx: ctx}
	if s.whole != nil {
		p.opts, s.whole = *s.whole, nil
	} else {
		p.opts = s.listOptions(opts)
	}
	p.first = p.opts
	if err := p.fetch(); err != nil {
		return nil, err
	}
	return p, nil
}

// listOptions chooses version and page size. A list that must not be older than a
// version is served from the server's watch cache if it is asked for whole, and
// from etcd if it is asked for in pages; so it is asked for whole.
func (s *lwSource) listOptions(opts source.ListOptions) metav1.ListOptions {
	o := metav1.ListOptions{Limit: listPage}
	switch opts.Match {
	case source.Any:
		o.ResourceVersion = "0"
	case source.NotOlderThan:
		o.ResourceVersion = string(opts.Version)
		if o.ResourceVersion != "" && o.ResourceVersion != "0" && !s.paged {
			o.Limit = 0
		}
	}
	if n := s.pageSize(); opts.PageSize == source.OnePage {
		o.Limit = 0
	} else if n != 0 {
		o.Limit = n
	} else if opts.PageSize != 0 {
		o.Limit = int64(opts.PageSize)
	}
	return o
}

// fetch gets the next page.
func (p *pages) fetch() error {
	page, err := call(p.ctx, func() (runtime.Object, error) { return p.src.lw.ListWithContext(p.ctx, p.opts) }, nil)
	if err != nil {
		if p.opts.Continue != "" && isExpired(err) {
			again := p.first
			again.Limit = 0
			p.src.whole = &again
		}
		return p.src.listError(err)
	}
	if gvk, table := isTable(page); table {
		return fmt.Errorf("the list is a table (%s), which has no objects in it; do not ask for tables", gvk)
	}
	m, err := meta.ListAccessor(page)
	if err != nil {
		return fmt.Errorf("reading what List returned, a %T: %w", page, err)
	}
	p.page = page
	p.rv = m.GetResourceVersion()
	next := m.GetContinue()
	if next != "" && p.opts.Continue == "" && p.opts.ResourceVersion == "0" {
		p.src.paged = true
	}
	p.opts.Continue = next
	p.opts.ResourceVersion, p.opts.ResourceVersionMatch = "", ""
	return nil
}

// piece is how many items of a page are handed on at a time.
const piece = 500

// Read hands on a page, piece by piece.
func (p *pages) Read(buf []object.Item[any]) (_ []object.Item[any], err error) {
	defer contain(p.ctx, p.src.contains(), source.Unavailable, &err)
	for len(p.items) == 0 {
		if p.page == nil {
			if p.opts.Continue == "" {
				return buf, io.EOF
			}
			if err := p.fetch(); err != nil {
				return buf, err
			}
		}
		err := meta.EachListItem(p.page, func(obj runtime.Object) error {
			p.items = append(p.items, obj)
			return nil
		})
		p.inList = inList(p.page)
		p.page = nil
		if err != nil {
			return buf, fmt.Errorf("reading the items of a list: %w", err)
		}
	}
	n := min(piece, len(p.items))
	for _, obj := range p.items[:n] {
		buf = append(buf, p.src.listed(obj, p.inList))
	}
	clear(p.items[:n])
	if p.items = p.items[n:]; len(p.items) == 0 {
		p.items = nil
	}
	return buf, nil
}

// inList reports whether the items of a list are values in its slice: one of them would
// keep the whole list alive.
func inList(list runtime.Object) bool {
	items, err := meta.GetItemsPtr(list)
	return err == nil && reflect.TypeOf(items).Elem().Elem().Kind() == reflect.Struct
}

// listed is item for an object of a list. One that lies in the list's own slice is copied
// out of it when it is wanted, which one that is stored already in this version is not: so
// a list must be left as it is until it is in the store.
func (s *lwSource) listed(obj runtime.Object, inList bool) (it object.Item[any]) {
	if inList && s.transform() != nil {
		s.item(&it, copied(obj))
		return it
	}
	s.item(&it, obj)
	if inList && it.Decode == nil {
		it.Value, it.Decode = nil, func([]byte) (any, error) { return copied(obj), nil }
	}
	return it
}

// copied is an object of its own with the same content.
func copied(obj runtime.Object) runtime.Object {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return obj
	}
	out := reflect.New(v.Type().Elem())
	out.Elem().Set(v.Elem())
	return out.Interface().(runtime.Object)
}

// Version is the list's version.
func (p *pages) Version() object.Version { return object.Version(p.rv) }

// Close forgets the page.
func (p *pages) Close() error {
	p.page, p.items = nil, nil
	return nil
}

// isTable reports whether a list or an object is a table for people.
func isTable(obj runtime.Object) (schema.GroupVersionKind, bool) {
	switch obj.(type) {
	case *unstructured.UnstructuredList, *unstructured.Unstructured:
	default:
		return schema.GroupVersionKind{}, false
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	return gvk, gvk.Kind == "Table" && gvk.Group == metav1.GroupName && (gvk.Version == "v1" || gvk.Version == "v1beta1")
}
