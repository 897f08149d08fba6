package query

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/mirador-k8s/mirador/object"
)

// Selection selects the objects that all of its parts match. The zero value selects all objects. It is safe for
// concurrent use.
type Selection struct {
	// Labels is a label selector; nil matches everything.
	Labels labels.Selector
	// Fields is a field selector.
	Fields Fields
	// Where is an expression; nil matches everything.
	Where *Where
}

// ParseSelection parses a label selector, a field selector and an expression. Any of them may be empty.
func ParseSelection(labelSelector, fieldSelector, where string) (Selection, error) {
	var s Selection
	if len(labelSelector) > maxSelector {
		return s, fmt.Errorf("parse a label selector of %d bytes: at most %d are allowed: %w", len(labelSelector),
			maxSelector, ErrInvalid)
	}
	var err error
	if labelSelector != "" {
		if s.Labels, err = labels.Parse(labelSelector); err != nil {
			return Selection{}, fmt.Errorf("parse label selector %q: %w: %w", labelSelector, err, ErrInvalid)
		}
	}
	if s.Fields, err = parseFields(fieldSelector); err != nil {
		return Selection{}, err
	}
	if where != "" {
		if s.Where, err = CompileWhere(where); err != nil {
			return Selection{}, err
		}
	}
	return s, nil
}

// String returns the selection as one string, which is the same for selections with the same texts.
func (s Selection) String() string {
	l, w := "", ""
	if s.Labels != nil {
		l = s.Labels.String()
	}
	if s.Where != nil {
		w = s.Where.String()
	}
	return fmt.Sprintf("labels %q fields %q where %q", l, s.Fields.String(), w)
}

// Empty reports whether the selection selects every object.
func (s Selection) Empty() bool {
	return (s.Labels == nil || s.Labels.Empty()) && len(s.Fields.terms) == 0 && s.Where == nil
}

// namespace returns the namespace that an object must have, if the selection requires one.
func (s Selection) namespace() (string, bool) { return s.Fields.exact(namespaceInKey) }

// name returns the name that an object must have, if the selection requires one.
func (s Selection) name() (string, bool) { return s.Fields.exact(nameInKey) }

// NeedsObject reports whether the selection needs more than an object's key.
func (s Selection) NeedsObject() bool {
	return s.Labels != nil && !s.Labels.Empty() || s.Fields.needObject() || s.Where != nil
}

// Matches reports whether the selection selects an object. If NeedsObject is false, d is not used and may be nil.
func (s Selection) Matches(ctx context.Context, cluster string, key object.Key, d *Doc) (bool, error) {
	if !s.Fields.matchKey(key) {
		return false, nil
	}
	if !s.NeedsObject() {
		return true, nil
	}
	return s.matchObject(ctx, cluster, d)
}

// OnlyLabels reports whether the selection needs nothing but an object's key and labels.
func (s Selection) OnlyLabels() bool { return !s.Fields.needObject() && s.Where == nil }

// MatchesLabels is like Matches, for a selection with OnlyLabels.
func (s Selection) MatchesLabels(key object.Key, set labels.Labels) bool {
	return s.Fields.matchKey(key) && (s.Labels == nil || s.Labels.Matches(set))
}

// matchObject evaluates the cheap parts first.
func (s Selection) matchObject(ctx context.Context, cluster string, d *Doc) (bool, error) {
	if err := d.Err(); err != nil {
		return false, err
	}
	if s.Labels != nil && !s.Labels.Matches((*scannedLabels)(d)) {
		return false, nil
	}
	if ok, err := s.Fields.matchObject(d); err != nil || !ok {
		return false, err
	}
	if s.Where == nil {
		return true, nil
	}
	return s.Where.Matches(ctx, cluster, d)
}
