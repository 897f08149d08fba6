package load

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTemplatesDependOnlyOnTheSeed(t *testing.T) {
	o := Options{Pods: 100, Templates: 7, Namespaces: 3, Seed: 5}
	if !reflect.DeepEqual(newTemplates(o), newTemplates(o)) {
		t.Error("the same seed gave different templates")
	}
	other := o
	other.Seed = 6
	if reflect.DeepEqual(newTemplates(o), newTemplates(other)) {
		t.Error("another seed gave the same templates")
	}
}

func TestPodsAreSpreadEvenlyAndNamedValidly(t *testing.T) {
	o := Options{Pods: 1000, Templates: 7, Namespaces: 3, Seed: 1}
	total, namespaces, names := 0, map[string]bool{}, map[string]bool{}
	for _, tm := range newTemplates(o) {
		total += tm.pods
		namespaces[tm.namespace] = true
		if tm.pods < 142 || tm.pods > 143 {
			t.Errorf("template %s has %d pods", tm.name, tm.pods)
		}
		for i := range tm.pods {
			name := tm.podName(o.Seed, i)
			names[tm.namespace+"/"+name] = true
			if errs := utilvalidation.IsDNS1123Label(name); len(errs) > 0 {
				t.Fatalf("%s: %v", name, errs)
			}
		}
		for k, v := range tm.labels {
			if errs := append(utilvalidation.IsQualifiedName(k), utilvalidation.IsValidLabelValue(v)...); len(errs) > 0 {
				t.Errorf("label %s=%s: %v", k, v, errs)
			}
		}
	}
	if total != 1000 || len(namespaces) != 3 || len(names) < 999 {
		t.Errorf("%d pods in %d namespaces with %d names", total, len(namespaces), len(names))
	}
}

func TestRepeatedNamesAreSkipped(t *testing.T) {
	l := &loader{names: map[string]bool{}}
	tm := newTemplates(Options{Pods: 1, Templates: 1, Namespaces: 1})[0]
	first := l.fresh(tm, 0)
	if first.name == "" || l.fresh(tm, 0).name != "" || l.fresh(tm, 1).name == first.name {
		t.Errorf("the name %q was used twice", first.name)
	}
}

func TestNeighboursBelongToDifferentTemplates(t *testing.T) {
	a, b := &template{name: "a"}, &template{name: "b"}
	pods := []podRef{{a, "1"}, {a, "2"}, {a, "3"}, {b, "4"}}
	interleave(pods)
	var order []string
	for _, p := range pods {
		order = append(order, p.name)
	}
	if !slices.Equal(order, []string{"1", "4", "2", "3"}) {
		t.Errorf("the order is %v", order)
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	good := Options{Pods: 10, Templates: 5, Namespaces: 2, Churn: 1, Duration: time.Second}
	if err := good.Validate(); err != nil {
		t.Errorf("good options: %v", err)
	}
	for flag, change := range map[string]func(*Options){
		"--pods":       func(o *Options) { o.Pods = 0 },
		"--templates":  func(o *Options) { o.Templates = 11 },
		"--namespaces": func(o *Options) { o.Namespaces = 6 },
		"--churn":      func(o *Options) { o.Churn = -1 },
		"--duration":   func(o *Options) { o.Churn = 0 },
	} {
		o := good
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

func TestServerErrorsAreRetriedABoundedNumberOfTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		trouble := apierrors.NewInternalError(errors.New("trouble"))
		err := retry(t.Context(), func(context.Context) error { calls++; return trouble })
		if !errors.Is(err, trouble) || calls != attempts {
			t.Errorf("%d calls, %v", calls, err)
		}
		calls = 0
		if err := retry(t.Context(), func(context.Context) error {
			if calls++; calls < 3 {
				return errors.New("connection refused")
			}
			return nil
		}); err != nil || calls != 3 {
			t.Errorf("%d calls, %v", calls, err)
		}
	})
}

func TestRefusalIsNotRetried(t *testing.T) {
	calls := 0
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("no"))
	if err := retry(t.Context(), func(context.Context) error { calls++; return refusal }); !errors.Is(err, refusal) ||
		calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	if worthRetrying(apierrors.NewGenericServerResponse(http.StatusTooManyRequests, "get", schema.GroupResource{}, "", "",
		0, true)) == false {
		t.Error("a request to a busy server is not retried")
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := retry(ctx, func(context.Context) error { cancel(); return errors.New("connection refused") })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRequestInFlightMayFinishWithinGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answered := func(after time.Duration) error {
			ctx, cancel := context.WithCancel(t.Context())
			return retry(ctx, func(ctx context.Context) error {
				cancel()
				select {
				case <-time.After(after):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		}
		if err := answered(grace - time.Millisecond); err != nil {
			t.Errorf("a response within the grace period was dropped: %v", err)
		}
		begun := time.Now()
		if err := answered(time.Hour); !errors.Is(err, context.Canceled) || time.Since(begun) != grace {
			t.Errorf("waited for a hanging server for %v: %v", time.Since(begun), err)
		}
	})
}

func TestParallelCallsEachOnceAndStopsAtTheFirstError(t *testing.T) {
	var done [500]atomic.Int32
	if err := parallel(t.Context(), len(done),
		func(_ context.Context, i int) error { done[i].Add(1); return nil }); err != nil {
		t.Fatal(err)
	}
	for i := range done {
		if n := done[i].Load(); n != 1 {
			t.Fatalf("%d was done %d times", i, n)
		}
	}
	broken := errors.New("broken")
	var calls atomic.Int32
	err := parallel(t.Context(), 1_000_000, func(context.Context, int) error { calls.Add(1); return broken })
	if !errors.Is(err, broken) || calls.Load() > workers {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
}

func TestProgressIsALineEveryTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := newProgress(&out, false, "pods", 10, 100)
		p.add(20)
		time.Sleep(5 * time.Second) // in fake time
		p.stop()
		want := "30/100 pods, 10/s, 7s left\n30/100 pods, 5/s, 14s left\n"
		if out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
		if p.done() != 30 || p.rate() != 4 {
			t.Errorf("done %d at %v/s", p.done(), p.rate())
		}
	})
}

func TestProgressIsABarOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := newProgress(&out, true, "pods", 0, 10)
		p.add(5)
		time.Sleep(barInterval + time.Millisecond)
		p.stop()
		want := "\r[" + strings.Repeat("=", 15) + strings.Repeat(" ", 15) + "] 5/10 pods, 25/s, 0s left\x1b[K\r\x1b[K"
		if out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	})
}

func TestPoolGivesAPodToOneWorkerAtATime(t *testing.T) {
	p := &pool{pods: []podRef{{nil, "a"}, {nil, "b"}}, serial: map[*template]int{}}
	first, ok1 := p.take()
	second, ok2 := p.take()
	if _, ok := p.take(); !ok1 || !ok2 || ok || first == second {
		t.Errorf("took %v and %v out of two", first, second)
	}
	p.put(first)
	if again, ok := p.take(); !ok || again != first {
		t.Errorf("took %v, want %v", again, first)
	}
}

func TestReplacementHasANameThatWasNeverUsed(t *testing.T) {
	o := Options{Pods: 2, Templates: 1, Namespaces: 1}
	l := &loader{Options: o, templates: newTemplates(o), names: map[string]bool{}}
	tm := l.templates[0]
	used := []string{l.fresh(tm, 0).name, l.fresh(tm, 1).name}
	p := &pool{serial: map[*template]int{}}
	if _, ok := p.replacement(l); ok {
		t.Error("a replacement without a deletion")
	}
	for range 3 {
		p.short(tm)
		ref, ok := p.replacement(l)
		if !ok || slices.Contains(used, ref.name) {
			t.Errorf("the replacement is %q, used are %v", ref.name, used)
		}
		used = append(used, ref.name)
	}
}
