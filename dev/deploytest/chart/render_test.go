package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

const (
	root      = "../../.."
	chartPath = root + "/deploy/chart"
	namespace = "mirador"
)

// values are values of the chart.
type values = map[string]any

// render renders the chart as helm does for a release with the name mirador, and returns the files by the names of
// their templates.
func render(vals values) (map[string]string, error) {
	c, err := loader.LoadDir(chartPath)
	if err != nil {
		return nil, err
	}
	release := common.ReleaseOptions{Name: "mirador", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(c, vals, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, text := range files {
		out[strings.TrimPrefix(name, "mirador/templates/")] = text
	}
	return out, nil
}

// objects are the objects of a rendered chart.
type objects []*unstructured.Unstructured

// renderObjects renders the chart and reads the objects.
func renderObjects(t *testing.T, vals values) (all objects) {
	t.Helper()
	files, err := render(vals)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			all = append(all, parse(t, name, files[name])...)
		}
	}
	return all
}

// parse reads the objects of a file.
func parse(t *testing.T, name, text string) (all objects) {
	t.Helper()
	for part := range strings.SplitSeq("\n"+text, "\n---") {
		var content map[string]any
		if err := yaml.UnmarshalStrict([]byte(part), &content); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, part)
		}
		if len(content) > 0 {
			all = append(all, &unstructured.Unstructured{Object: content})
		}
	}
	return all
}

// one returns the object of a kind. There must be exactly one.
func (all objects) one(t *testing.T, kind string) *unstructured.Unstructured {
	t.Helper()
	var found *unstructured.Unstructured
	for _, o := range all {
		if o.GetKind() == kind {
			if found != nil {
				t.Fatalf("there are several objects of kind %s", kind)
			}
			found = o
		}
	}
	if found == nil {
		t.Fatalf("there is no object of kind %s", kind)
	}
	return found
}

// has reports whether there is an object of a kind.
func (all objects) has(kind string) bool {
	return slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
}

// configFile returns a file of the daemon's ConfigMap.
func (all objects) configFile(t *testing.T, name string) string {
	t.Helper()
	for _, o := range all {
		if o.GetKind() == "ConfigMap" && o.GetName() == "mirador" {
			text, _, _ := unstructured.NestedString(o.Object, "data", name)
			return text
		}
	}
	t.Fatal("there is no ConfigMap mirador")
	return ""
}

// pod returns the template of the daemon's pod.
func (all objects) pod(t *testing.T) *corev1.PodTemplateSpec {
	t.Helper()
	template, _, err := unstructured.NestedMap(all.one(t, "StatefulSet").Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(template, &pod, true); err != nil {
		t.Fatal(err)
	}
	return &pod
}

// monitoring are the values that switch everything for Prometheus and Grafana on.
func monitoring() values {
	return values{"serviceMonitor": values{"enabled": true}, "prometheusRule": values{"enabled": true},
		"dashboard": values{"enabled": true}}
}
