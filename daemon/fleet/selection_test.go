package fleet

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var everything = &resourceFilter{secrets: true}

func res(name, kind string, verbs ...string) metav1.APIResource {
	if verbs == nil {
		verbs = []string{"create", "list", "watch"}
	}
	return metav1.APIResource{Name: name, Kind: kind, Verbs: verbs}
}

func TestOnlyResourcesWithListAndWatchAreSelected(t *testing.T) {
	o := selectFrom([]group{{"", []groupVersion{{name: "v1", resources: []metav1.APIResource{
		res("pods", "Pod"), res("pods/status", "Pod"), res("bindings", "Binding", "create"),
		res("componentstatuses", "ComponentStatus", "list"),
	}}}}}, nil, everything)
	if len(o.infos) != 1 || o.infos[0].Name != "pods" || len(o.faults) != 0 {
		t.Errorf("taken: %+v, faults %v", o.infos, o.faults)
	}
}

func TestResourceIsSelectedOnceInTheFirstVersionThatHasIt(t *testing.T) {
	groups := []group{
		{"a.com", []groupVersion{
			{name: "v2", resources: []metav1.APIResource{res("xs", "X")}},
			{name: "v1", resources: []metav1.APIResource{res("xs", "X"), res("ys", "Y")}},
			{name: "v1beta1", resources: []metav1.APIResource{res("xs", "X")}},
		}},
		{"a.com", []groupVersion{{name: "v3", resources: []metav1.APIResource{res("xs", "X")}}}}, // listed twice
	}
	o := selectFrom(groups, nil, everything)
	var got []string
	for _, i := range o.infos {
		got = append(got, i.Version+" "+i.Name)
	}
	if strings.Join(got, ", ") != "v1 ys, v2 xs" || len(o.groups) != 1 || len(o.groups[0].Versions) != 2 ||
		o.groups[0].PreferredVersion.Version != "v2" {
		t.Errorf("taken %v, groups %+v", got, o.groups)
	}
}

func TestUnknownGroupVersionKeepsItsResources(t *testing.T) {
	known := selectFrom([]group{{"a.com", []groupVersion{{name: "v1", resources: []metav1.APIResource{res("xs", "X")}}}}},
		nil, everything)
	failing := []group{{"a.com", []groupVersion{{name: "v1", err: errors.New("down")}}}}
	if o := selectFrom(failing, known.all, everything); len(o.infos) != 1 || len(o.groups) != 1 || len(o.faults) != 1 {
		t.Errorf("%+v", o)
	}
	if o := selectFrom(nil, known.all, everything); len(o.infos) != 0 {
		t.Error("a removed resource is still selected")
	}
}

func TestNumberOfResourcesIsBounded(t *testing.T) {
	var many []metav1.APIResource
	for i := range maxResources + 100 {
		many = append(many, res(fmt.Sprintf("r%d", i), "R"))
	}
	o := selectFrom([]group{{"a.com", []groupVersion{{name: "v1", resources: many}}}}, nil, everything)
	if len(o.infos) != maxResources || len(o.faults) != 100 {
		t.Errorf("%d taken, %d faults", len(o.infos), len(o.faults))
	}
}

func TestPanicWhileReadingAnAnswerIsAnError(t *testing.T) {
	_, err := recovered(func() (int, error) { panic("boom") })
	if err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("%v", err)
	}
}

func FuzzDiscoveryIsReadOrRefused(f *testing.F) {
	f.Add([]byte(`{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"a.com"},"versions":[{"version":"v1",` +
		`"resources":[{"resource":"xs","responseKind":{"kind":"X"},"scope":"Namespaced","verbs":["list","watch"]}]}]}]}`))
	f.Add([]byte(`{"kind":"APIGroupList","groups":[{"name":"a.com","versions":[{"version":"v1"}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if groups, err := readAggregated(body); err == nil {
			o := selectFrom(groups, nil, everything)
			for i := range o.infos {
				if strings.ContainsAny(gvrOf(&o.infos[i]).String(), "%?#<\x00") || strings.Contains(o.infos[i].Name, "..") {
					t.Fatalf("taken: %+v", o.infos[i])
				}
			}
		}
		for _, path := range []string{"/api", "/apis"} {
			readGroups(path, body)
		}
	})
}
