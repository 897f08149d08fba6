package chart

import (
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestThePrometheusOperatorKnowsEveryField(t *testing.T) {
	all := renderObjects(t, values{"metrics": monitoring()})
	for kind, into := range map[string]any{"ServiceMonitor": &monitoringv1.ServiceMonitor{},
		"PrometheusRule": &monitoringv1.PrometheusRule{}} {
		object := all.one(t, kind)
		if got := object.GetAPIVersion(); got != monitoringv1.SchemeGroupVersion.String() {
			t.Errorf("%s is of %s", kind, got)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
