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

// listPage is the page size of lists.
const listPage = 500

// pages is an open list.
type pages struct {
	src  *lwSource
	ctx  context.Context
	opts metav1.ListOptions // of the next page
	page runtime.Object     // fetched, and not yet split into items
	// items are those of the last page that Read has not returned. inList reports that they are values in its slice.
	items  []runtime.Object
	inList bool
	rv     string
	// first are the options of the first page.
	first metav1.ListOptions
}

// List fetches the first page.
func (s *lwSource) List(ctx context.Context, opts source.ListOptions) (_ source.Lister[any], err error) {
	defer recoverPanic(ctx, s.recovers(), source.Unavailable, &err)
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

// listOptions chooses version and page size. The server answers a list that must not be
// older than a version from its watch cache, but only if the list has no limit; with a
// limit it reads etcd. So such a list has no limit.
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

// fetch reads the next page.
func (p *pages) fetch() error {
	page, err := call(p.ctx, func() (runtime.Object, error) { return p.src.lw.ListWithContext(p.ctx, p.opts) }, nil)
	if err != nil {
		if p.opts.Continue != "" && isExpired(err) {
			whole := p.first
			whole.Limit = 0
			p.src.whole = &whole
		}
		return p.src.listError(err)
	}
	if gvk, table := isTable(page); table {
		return fmt.Errorf("the list is a table (%s), which contains no objects; request objects, not tables", gvk)
	}
	m, err := meta.ListAccessor(page)
	if err != nil {
		return fmt.Errorf("reading the result of List, a %T: %w", page, err)
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

// readItems is how many items one Read returns at most.
const readItems = 500

// Read returns the items of the list, a part of a page at a time.
func (p *pages) Read(buf []object.Item[any]) (_ []object.Item[any], err error) {
	defer recoverPanic(p.ctx, p.src.recovers(), source.Unavailable, &err)
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
	n := min(readItems, len(p.items))
	for _, obj := range p.items[:n] {
		buf = append(buf, p.src.listed(obj, p.inList))
	}
	clear(p.items[:n])
	if p.items = p.items[n:]; len(p.items) == 0 {
		p.items = nil
	}
	return buf, nil
}

// inList reports whether the items of a list are values in its slice, so that a pointer
// to one of them would keep the whole list in memory.
func inList(list runtime.Object) bool {
	items, err := meta.GetItemsPtr(list)
	return err == nil && reflect.TypeOf(items).Elem().Elem().Kind() == reflect.Struct
}

// listed is item for an object of a list. An object in the list's own slice is copied when
// the store decodes it, which the store does not do for a version that it already has. So
// the list must not change until it is stored.
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

// copied returns a shallow copy of an object.
func copied(obj runtime.Object) runtime.Object {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return obj
	}
	out := reflect.New(v.Type().Elem())
	out.Elem().Set(v.Elem())
	return out.Interface().(runtime.Object)
}

// Version returns the version of the list.
func (p *pages) Version() object.Version { return object.Version(p.rv) }

// Close releases the page.
func (p *pages) Close() error {
	p.page, p.items = nil, nil
	return nil
}

// isTable reports whether a list or an object is a Table, which servers send for printing.
func isTable(obj runtime.Object) (schema.GroupVersionKind, bool) {
	switch obj.(type) {
	case *unstructured.UnstructuredList, *unstructured.Unstructured:
	default:
		return schema.GroupVersionKind{}, false
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	return gvk, gvk.Kind == "Table" && gvk.Group == metav1.GroupName && (gvk.Version == "v1" || gvk.Version == "v1beta1")
}
