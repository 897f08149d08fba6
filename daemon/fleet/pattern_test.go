package fleet

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPatternsSelectResources(t *testing.T) {
	type list = []string
	for _, c := range []struct {
		include, exclude list
		secrets          bool
		takes, leaves    list
	}{
		{nil, nil, false, list{"pods.", "deployments.apps", "widgets.example.com", "secrets.example.com"}, list{"secrets."}},
		{nil, nil, true, list{"secrets."}, nil},
		{nil, nil, false, list{"events.", "leases.example.com"},
			list{"leases.coordination.k8s.io", "events.events.k8s.io"}},
		{nil, list{"pods"}, false, nil, list{"leases.coordination.k8s.io", "events.events.k8s.io"}},
		{list{"*"}, nil, false, list{"events.", "leases.coordination.k8s.io", "events.events.k8s.io"}, nil},
		{list{"leases"}, nil, false, list{"leases.coordination.k8s.io"}, list{"events.events.k8s.io", "pods."}},
		{list{"secrets", "*", "secrets."}, nil, false, list{"pods."}, list{"secrets."}},
		{list{"pods"}, nil, false, list{"pods.", "pods.metrics.k8s.io"}, list{"podtemplates.", "deployments.apps"}},
		{list{"pods."}, nil, false, list{"pods."}, list{"pods.metrics.k8s.io"}},
		{list{"deployments.apps"}, nil, false, list{"deployments.apps"},
			list{"deployments.example.com", "replicasets.apps", "deployments."}},
		{list{"*.example.com"}, nil, false, list{"widgets.example.com"}, list{"widgets.eu.example.com", "pods."}},
		{list{"*.*.example.com"}, nil, false, list{"widgets.eu.example.com"}, list{"widgets.example.com"}},
		{list{"*"}, list{"events"}, false, list{"pods."}, list{"events.", "events.events.k8s.io"}},
		{list{"pods"}, list{"*"}, true, nil, list{"pods.", "secrets."}},
		{nil, list{"*sets"}, false, list{"deployments.apps"}, list{"replicasets.apps", "statefulsets.apps"}},
	} {
		filter, err := newResourceFilter(c.include, c.exclude, c.secrets)
		if err != nil {
			t.Fatal(err)
		}
		for want, all := range map[bool]list{true: c.takes, false: c.leaves} {
			for _, name := range all {
				if r := schema.ParseGroupResource(name); filter.includes(r) != want {
					t.Errorf("include %q, exclude %q, secrets %v: includes %q: %v", c.include, c.exclude, c.secrets, name, !want)
				}
			}
		}
	}
}

func TestInvalidPatternIsRefused(t *testing.T) {
	for _, text := range []string{"", ".apps", "Pods", "pods/status", "a b", "[a", "pods?"} {
		if _, err := New(Options{Include: []string{text}}); err == nil {
			t.Errorf("%q was accepted as a pattern", text)
		}
		if _, err := New(Options{Exclude: []string{text}}); err == nil {
			t.Errorf("%q was accepted as a pattern", text)
		}
	}
}
