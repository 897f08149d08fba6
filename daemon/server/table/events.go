package table

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var events = []entry{
	of("", "Event", event),
	of("events.k8s.io", "Event", eventNew),
}

// eventNew prints an event of events.k8s.io, which has the same fields under other names.
func eventNew(e *eventsv1.Event, now time.Time) Row {
	old := &corev1.Event{
		ObjectMeta: e.ObjectMeta, InvolvedObject: e.Regarding, Reason: e.Reason, Message: e.Note, Type: e.Type,
		Source: e.DeprecatedSource, FirstTimestamp: e.DeprecatedFirstTimestamp, LastTimestamp: e.DeprecatedLastTimestamp,
		Count: e.DeprecatedCount, EventTime: e.EventTime,
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
	}
	if e.Series != nil {
		old.Series = &corev1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return event(old, now)
}

func event(e *corev1.Event, now time.Time) Row {
	first := age(e.FirstTimestamp, now)
	if e.FirstTimestamp.IsZero() {
		first = age(metav1.Time(e.EventTime), now)
	}
	last := age(e.LastTimestamp, now)
	if e.LastTimestamp.IsZero() {
		last = first
	}
	count := e.Count
	if e.Series != nil {
		last, count = age(metav1.Time(e.Series.LastObservedTime), now), e.Series.Count
	} else if count == 0 {
		count = 1 // an event of events.k8s.io that occurred once has no count
	}
	about := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Name != "" {
		about += "/" + e.InvolvedObject.Name
	}
	return cells(last, e.Type, e.Reason, about, e.InvolvedObject.FieldPath, eventSource(e),
		strings.TrimSpace(e.Message), first, int64(count), e.Name)
}

// eventSource returns the component that reported an event, and its host. The deprecated fields take precedence.
func eventSource(e *corev1.Event) string {
	who, where := or(e.Source.Component, e.ReportingController), or(e.Source.Host, e.ReportingInstance)
	if where == "" {
		return who
	}
	return who + ", " + where
}
