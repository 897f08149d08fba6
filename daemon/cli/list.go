package cli

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	acceptTable    = "application/json;as=Table;g=meta.k8s.io;v=v1"
	acceptMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	acceptOneMeta  = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	acceptJSON     = "application/json"
	// pageSize is the page size of lists.
	pageSize = 500
	// restarts is how often a list is restarted after its pages expired.
	restarts = 3
)

// page is one page of a list in any form.
type page struct {
	Metadata metav1.ListMeta                `json:"metadata"`
	Columns  []metav1.TableColumnDefinition `json:"columnDefinitions"`
	Rows     []row                          `json:"rows"`
	Items    []json.RawMessage              `json:"items"`
}

// row is one row of a Table.
type row struct {
	Cells  []any `json:"cells"`
	Object struct {
		Metadata metadata `json:"metadata"`
	} `json:"object"`
}

// result is a whole list.
type result struct {
	page
	more bool  // there are more objects than the limit
	left int64 // how many, if known
}

// list reads all pages, up to a limit; 0 means no limit.
func (s *session) list(ctx context.Context, a *ask, accept string, limit int64) (*result, error) {
	for try := 0; ; try++ {
		out, err := s.pages(ctx, a, accept, limit)
		if apierrors.IsResourceExpired(err) && try < restarts {
			continue // the server keeps the snapshot of a list only for a while
		}
		return out, err
	}
}

func (s *session) pages(ctx context.Context, a *ask, accept string, limit int64) (*result, error) {
	out := &result{}
	params := maps.Clone(a.params)
	for {
		size := int64(pageSize)
		if limit > 0 {
			size = min(size, limit-out.len())
		}
		params.Set("limit", strconv.FormatInt(size, 10))
		var p page
		if err := s.get(ctx, a.path, params, accept, &p); err != nil {
			return nil, err
		}
		if out.Columns == nil {
			out.Columns = p.Columns
		}
		out.Metadata = p.Metadata
		out.Rows = append(out.Rows, p.Rows...)
		out.Items = append(out.Items, p.Items...)
		next := p.Metadata.Continue
		if next == "" {
			return out, nil
		}
		if limit > 0 && out.len() >= limit {
			out.more = true
			if n := p.Metadata.RemainingItemCount; n != nil {
				out.left = *n
			}
			return out, nil
		}
		params.Set("continue", next)
	}
}

func (r *result) len() int64 { return int64(len(r.Rows) + len(r.Items)) }

// metas returns the metadata of rows and items, without those that cannot be parsed.
func (r *result) metas() (out []metadata) {
	for i := range r.Rows {
		out = append(out, r.Rows[i].Object.Metadata)
	}
	for _, item := range r.Items {
		var o struct {
			Metadata metadata `json:"metadata"`
		}
		if json.Unmarshal(item, &o) == nil {
			out = append(out, o.Metadata)
		}
	}
	return out
}
