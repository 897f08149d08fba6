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

// Scope selects the objects that are mirrored. The zero Scope selects all.
type Scope struct {
	// Namespaces selects the objects of these namespaces. None, or metav1.NamespaceAll alone, means all.
	Namespaces []string
	// Labels selects objects by their labels, such as "app=web,tier!=db". The server evaluates it.
	Labels string
	// Fields selects objects by their fields, such as "spec.nodeName=n1". The server evaluates it and supports few
	// fields.
	Fields string
}

// scope is a Scope in canonical spelling, so that equal scopes share an informer.
type scope struct {
	namespaces []string // sorted; none for all
	labels     string
	fields     string
}

func (s *Scope) check() (out scope, err error) {
	for _, n := range s.Namespaces {
		if n == metav1.NamespaceAll {
			if len(s.Namespaces) > 1 {
				return out, errors.New(`"" stands for all namespaces and cannot be one of several; leave Scope.Namespaces empty`)
			}
			continue
		}
		if faults := validation.ValidateNamespaceName(n, false); len(faults) > 0 {
			return out, fmt.Errorf("%q is not the name of a namespace: %s", n, strings.Join(faults, "; "))
		}
		out.namespaces = append(out.namespaces, n)
	}
	slices.Sort(out.namespaces)
	out.namespaces = slices.Compact(out.namespaces)
	byLabel, err := labels.Parse(s.Labels)
	if err != nil {
		return out, fmt.Errorf("the label selector %q is malformed; write it as in \"app=web,tier!=db\": %w", s.Labels, err)
	}
	byField, err := fields.ParseSelector(s.Fields)
	if err != nil {
		return out, fmt.Errorf("the field selector %q is malformed; write it as in \"spec.nodeName=n1\": %w", s.Fields, err)
	}
	out.labels, out.fields = byLabel.String(), byField.String()
	return out, nil
}

// parts returns the namespaces that need an informer each; "" means all namespaces.
func (s *scope) parts() []string {
	if len(s.namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return s.namespaces
}
