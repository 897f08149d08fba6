package kube

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A bookmark means the same in whatever way it is written.
func TestABookmarkIsReadHoweverItIsWritten(t *testing.T) {
	for raw, want := range map[string]metav1.ObjectMeta{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","creationTimestamp":null},"spec":{}}`: {
			ResourceVersion: "7"},
		`{ "metadata" : { "labels": {"a":"b"}, "resourceVersion" : "8" } }`: {ResourceVersion: "8"},
		`{"metadata":{"resourceVersion":"\u0039"}}`:                         {ResourceVersion: "9"},
		`{"metadata":{}}`: {},
		`{"metadata":{"resourceVersion":"10","annotations":{"k8s.io/initial-events-end":"true"}}}`: {
			ResourceVersion: "10", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}},
		`{"metadata":{"resourceVersion":"11","\u0061nnotations":{"k8s.io/initial-events-end":"true"}}}`: {
			ResourceVersion: "11", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}},
	} {
		got, err := jsonWire{}.meta([]byte(raw))
		if err != nil || got.ResourceVersion != want.ResourceVersion ||
			got.Annotations[metav1.InitialEventsAnnotationKey] != want.Annotations[metav1.InitialEventsAnnotationKey] {
			t.Errorf("%s: version %q, annotations %v, %v", raw, got.ResourceVersion, got.Annotations, err)
		}
	}
	for _, raw := range []string{`{"metadata":{"resourceVersion":"7"}`, `{"metadata":{"resourceVersion":"7"}}}`, `7`} {
		if got, err := (jsonWire{}).meta([]byte(raw)); err == nil {
			t.Errorf("%s is a bookmark at %q", raw, got.ResourceVersion)
		}
	}
}
