package table

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// The texts for missing values. They are used as the API server uses them.
const (
	none    = "<none>"
	unset   = "<unset>"
	unknown = "<unknown>"
)

// age formats the time since t, as "5m" or "3d4h".
func age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// born returns the age of an object.
func born(o *metav1.ObjectMeta, now time.Time) string { return age(o.CreationTimestamp, now) }

// or returns s, or instead if s is empty.
func or(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}

// orPtr returns *p as a cell, or instead if p is nil.
func orPtr[T any](p *T, instead any) any {
	if p == nil {
		return instead
	}
	return *p
}

// val returns *p, or the zero value if p is nil.
func val[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// shown is how many values of a long list a cell shows.
const shown = 3

// few joins the first values and appends the number of the others.
func few(values []string) string {
	if len(values) <= shown {
		return strings.Join(values, ",")
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(values[:shown], ","), len(values)-shown)
}

// containers returns the names and the images of containers, for two cells.
func containers(list []corev1.Container) (names, images string) {
	var n, i []string
	for c := range slices.Values(list) {
		n, i = append(n, c.Name), append(i, c.Image)
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}

// whether formats an optional bool.
func whether(b *bool) string {
	switch {
	case b == nil:
		return unset
	case *b:
		return "True"
	}
	return "False"
}
