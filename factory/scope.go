package factory

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Scope narrows what is mirrored: to namespaces, to labels, to fields. A scope
// given for one handle replaces the factory's of the same sort.
type Scope func(*scope) error

func (s Scope) apply(set *settings) error { return s.narrow(&set.scope) }

func (s Scope) narrow(to *scope) error {
	if s == nil {
		return errors.New("a scope is nil; leave it out")
	}
	return s(to)
}

// scope is a set of namespaces and two selectors, each in its one canonical
// spelling, so that equal scopes are the same informer.
type scope struct {
	namespaces []string // sorted; none for all
	chosen     bool     // the namespaces were given
	labels     string
	fields     string
}

// Namespaces takes the objects of these namespaces. A single "" takes all, as
// metav1.NamespaceAll does.
func Namespaces(names ...string) Scope {
	return func(s *scope) error {
		if len(names) == 0 {
			return errors.New(`no namespace is named; name one, or use Namespaces("") for all`)
		}
		s.chosen, s.namespaces = true, nil
		if len(names) == 1 && names[0] == metav1.NamespaceAll {
			return nil
		}
		for _, n := range names {
			if n == metav1.NamespaceAll {
				return errors.New(`"" stands for all namespaces and cannot be one of several; use Namespaces("") alone`)
			}
			if faults := validation.ValidateNamespaceName(n, false); len(faults) > 0 {
				return fmt.Errorf("%q is not the name of a namespace: %s", n, strings.Join(faults, "; "))
			}
		}
		sorted := slices.Sorted(slices.Values(names))
		s.namespaces = slices.Compact(sorted)
		return nil
	}
}

// Labels takes the objects whose labels match, such as "app=web,tier!=db"; "" takes
// all. The server does the selecting.
func Labels(selector string) Scope {
	return func(s *scope) error {
		parsed, err := labels.Parse(selector)
		if err != nil {
			return fmt.Errorf("the label selector %q is malformed; write it as in \"app=web,tier!=db\": %w", selector, err)
		}
		s.labels = parsed.String()
		return nil
	}
}

// Fields takes the objects whose fields match, such as "spec.nodeName=n1"; "" takes
// all. The server does the selecting and knows few fields.
func Fields(selector string) Scope {
	return func(s *scope) error {
		parsed, err := fields.ParseSelector(selector)
		if err != nil {
			return fmt.Errorf("the field selector %q is malformed; write it as in \"spec.nodeName=n1\": %w", selector, err)
		}
		s.fields = parsed.String()
		return nil
	}
}

// parts are the namespaces that need an informer each; "" is all of them.
func (s *scope) parts() []string {
	if len(s.namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return s.namespaces
}
