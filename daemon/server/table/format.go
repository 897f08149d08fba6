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

// What stands for a value that is not there. Which one is printed where is the server's habit.
const (
	none    = "<none>"
	unset   = "<unset>"
	unknown = "<unknown>"
)

// age is the time since t in a few letters, as "5m" or "3d4h".
func age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// born is the age of an object.
func born(o *metav1.ObjectMeta, now time.Time) string { return age(o.CreationTimestamp, now) }

// or returns s, or instead if s is empty.
func or(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}

// orPtr returns what p points at as a cell, or instead if it points at nothing.
func orPtr[T any](p *T, instead any) any {
	if p == nil {
		return instead
	}
	return *p
}

// val returns what p points at, or the zero value.
func val[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// shown is how many values of a long list a cell has.
const shown = 3

// few joins the first values and counts the others.
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

// whether is how a yes or no is written that may be unsaid.
func whether(b *bool) string {
	switch {
	case b == nil:
		return unset
	case *b:
		return "True"
	}
	return "False"
}
