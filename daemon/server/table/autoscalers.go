package table

import (
	"fmt"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/json"
)

var autoscalers = []entry{
	of("autoscaling", "HorizontalPodAutoscaler", autoscaler, "v2"),
	of("autoscaling", "HorizontalPodAutoscaler", autoscalerV1, "v1"),
}

func autoscaler(h *autoscalingv2.HorizontalPodAutoscaler, now time.Time) Row {
	var least any = unset
	if h.Spec.MinReplicas != nil {
		least = fmt.Sprintf("%d", *h.Spec.MinReplicas)
	}
	ref := h.Spec.ScaleTargetRef
	return cells(h.Name, ref.Kind+"/"+ref.Name, metrics(h.Spec.Metrics, h.Status.CurrentMetrics), least,
		int64(h.Spec.MaxReplicas), int64(h.Status.CurrentReplicas), born(&h.ObjectMeta, now))
}

// shownMetrics is how many metrics a cell shows.
const shownMetrics = 2

func metrics(specs []autoscalingv2.MetricSpec, states []autoscalingv2.MetricStatus) string {
	if len(specs) == 0 {
		return none
	}
	var list []string
	for i := range specs[:min(shownMetrics, len(specs))] {
		var state autoscalingv2.MetricStatus
		if i < len(states) {
			state = states[i]
		}
		list = append(list, metric(&specs[i], &state))
	}
	text := strings.Join(list, ", ")
	if left := len(specs) - len(list); left > 0 {
		text += fmt.Sprintf(" + %d more...", left)
	}
	return text
}

// metric formats the current value of a metric and its target.
func metric(m *autoscalingv2.MetricSpec, s *autoscalingv2.MetricStatus) string {
	switch {
	case m.Type == autoscalingv2.ExternalMetricSourceType && m.External != nil:
		if s.External == nil {
			s.External = &autoscalingv2.ExternalMetricStatus{}
		}
		return ofTarget(&m.External.Target, &s.External.Current)
	case m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil:
		if s.Object == nil {
			s.Object = &autoscalingv2.ObjectMetricStatus{}
		}
		return ofTarget(&m.Object.Target, &s.Object.Current)
	case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
		if s.Pods == nil {
			s.Pods = &autoscalingv2.PodsMetricStatus{}
		}
		return quantity(s.Pods.Current.AverageValue) + "/" + m.Pods.Target.AverageValue.String()
	case m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil:
		if s.Resource == nil {
			s.Resource = &autoscalingv2.ResourceMetricStatus{}
		}
		return ofResource(m.Resource.Name, &m.Resource.Target, &s.Resource.Current)
	case m.Type == autoscalingv2.ContainerResourceMetricSourceType && m.ContainerResource != nil:
		if s.ContainerResource == nil {
			s.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{}
		}
		return ofResource(m.ContainerResource.Name, &m.ContainerResource.Target, &s.ContainerResource.Current)
	}
	return "<unknown type>"
}

// ofTarget formats a metric that has a total or a value per pod.
func ofTarget(target *autoscalingv2.MetricTarget, now *autoscalingv2.MetricValueStatus) string {
	if target.AverageValue != nil {
		return quantity(now.AverageValue) + "/" + target.AverageValue.String() + " (avg)"
	}
	return quantity(now.Value) + "/" + target.Value.String()
}

// ofResource formats a metric that is an amount or a percentage of the request.
func ofResource(name corev1.ResourceName, target *autoscalingv2.MetricTarget,
	now *autoscalingv2.MetricValueStatus) string {
	if target.AverageValue != nil {
		return fmt.Sprintf("%s: %s/%s", name, quantity(now.AverageValue), target.AverageValue)
	}
	return fmt.Sprintf("%s: %s/%s", name, percent(now.AverageUtilization, unknown),
		percent(target.AverageUtilization, "<auto>"))
}

func quantity(q *resource.Quantity) string {
	if q == nil {
		return unknown
	}
	return q.String()
}

func percent(p *int32, instead string) string {
	if p == nil {
		return instead
	}
	return fmt.Sprintf("%d%%", *p)
}

// The annotations in which v1 has the metrics that it has no fields for.
const (
	metricSpecs    = "autoscaling.alpha.kubernetes.io/metrics"
	metricStatuses = "autoscaling.alpha.kubernetes.io/current-metrics"
)

// autoscalerV1 converts an autoscaler of v1 and prints it.
func autoscalerV1(h *autoscalingv1.HorizontalPodAutoscaler, now time.Time) Row {
	v2 := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: h.ObjectMeta}
	v2.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference(h.Spec.ScaleTargetRef)
	v2.Spec.MinReplicas, v2.Spec.MaxReplicas = h.Spec.MinReplicas, h.Spec.MaxReplicas
	v2.Status.CurrentReplicas = h.Status.CurrentReplicas
	if p := h.Spec.TargetCPUUtilizationPercentage; p != nil {
		v2.Spec.Metrics = append(v2.Spec.Metrics, autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{AverageUtilization: p}}})
		// The CPU always comes first, even if its state is unknown.
		v2.Status.CurrentMetrics = append(v2.Status.CurrentMetrics,
			autoscalingv2.MetricStatus{Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricStatus{Name: corev1.ResourceCPU,
					Current: autoscalingv2.MetricValueStatus{AverageUtilization: h.Status.CurrentCPUUtilizationPercentage}}})
	}
	v2.Spec.Metrics = append(v2.Spec.Metrics, annotatedSpecs(h.Annotations[metricSpecs])...)
	v2.Status.CurrentMetrics = append(v2.Status.CurrentMetrics, annotatedStatuses(h.Annotations[metricStatuses])...)
	return autoscaler(v2, now)
}

// annotatedSpecs decodes the metrics of the annotation. It ignores an annotation that cannot be decoded.
func annotatedSpecs(text string) (specs []autoscalingv2.MetricSpec) {
	var old []autoscalingv1.MetricSpec
	if json.Unmarshal([]byte(text), &old) != nil {
		return nil
	}
	for _, m := range old {
		spec := autoscalingv2.MetricSpec{Type: autoscalingv2.MetricSourceType(m.Type)}
		if m.External != nil {
			spec.External = &autoscalingv2.ExternalMetricSource{Target: autoscalingv2.MetricTarget{
				Value: m.External.TargetValue, AverageValue: m.External.TargetAverageValue}}
		}
		if m.Object != nil {
			spec.Object = &autoscalingv2.ObjectMetricSource{Target: autoscalingv2.MetricTarget{Value: &m.Object.TargetValue,
				AverageValue: m.Object.AverageValue}}
		}
		if m.Pods != nil {
			spec.Pods = &autoscalingv2.PodsMetricSource{Target: autoscalingv2.MetricTarget{
				AverageValue: &m.Pods.TargetAverageValue}}
		}
		if r := m.Resource; r != nil {
			spec.Resource = &autoscalingv2.ResourceMetricSource{Name: r.Name,
				Target: autoscalingv2.MetricTarget{AverageValue: r.TargetAverageValue,
					AverageUtilization: r.TargetAverageUtilization}}
		}
		if r := m.ContainerResource; r != nil {
			spec.ContainerResource = &autoscalingv2.ContainerResourceMetricSource{Name: r.Name,
				Target: autoscalingv2.MetricTarget{AverageValue: r.TargetAverageValue,
					AverageUtilization: r.TargetAverageUtilization}}
		}
		specs = append(specs, spec)
	}
	return specs
}

func annotatedStatuses(text string) (states []autoscalingv2.MetricStatus) {
	var old []autoscalingv1.MetricStatus
	if json.Unmarshal([]byte(text), &old) != nil {
		return nil
	}
	for _, m := range old {
		state := autoscalingv2.MetricStatus{Type: autoscalingv2.MetricSourceType(m.Type)}
		if m.External != nil {
			state.External = &autoscalingv2.ExternalMetricStatus{Current: autoscalingv2.MetricValueStatus{
				Value: &m.External.CurrentValue, AverageValue: m.External.CurrentAverageValue}}
		}
		if m.Object != nil {
			state.Object = &autoscalingv2.ObjectMetricStatus{Current: autoscalingv2.MetricValueStatus{
				Value: &m.Object.CurrentValue, AverageValue: m.Object.AverageValue}}
		}
		if m.Pods != nil {
			state.Pods = &autoscalingv2.PodsMetricStatus{Current: autoscalingv2.MetricValueStatus{
				AverageValue: &m.Pods.CurrentAverageValue}}
		}
		if r := m.Resource; r != nil {
			state.Resource = &autoscalingv2.ResourceMetricStatus{Name: r.Name,
				Current: autoscalingv2.MetricValueStatus{AverageValue: &r.CurrentAverageValue,
					AverageUtilization: r.CurrentAverageUtilization}}
		}
		if r := m.ContainerResource; r != nil {
			state.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{Name: r.Name,
				Current: autoscalingv2.MetricValueStatus{AverageValue: &r.CurrentAverageValue,
					AverageUtilization: r.CurrentAverageUtilization}}
		}
		states = append(states, state)
	}
	return states
}
