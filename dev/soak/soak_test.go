package main

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mirador-k8s/mirador/dev/testcluster"
	"github.com/mirador-k8s/mirador/object"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAShortSoakLosesAndLeavesNothing is a small `make soak`. It has too few samples to check flatness, but checks
// what is left behind.
func TestAShortSoakLosesAndLeavesNothing(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	f := flags{pods: 300, cluster: cluster.Name(), devcluster: cmp.Or(os.Getenv("DEVCLUSTER"), "../../bin/devcluster")}
	if err := f.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := plan{
		cfg: cluster.Config(), lasts: 6 * time.Second, every: time.Second, guests: 10,
		stay: 2 * time.Second, out: t.Output(),
		churn: func(ctx context.Context) error { return f.load(ctx, "--churn", "100", "--duration", "6s") },
	}
	out, err := p.soak(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range append(out.Wrong, out.Problems...) {
		t.Error(w)
	}
	if len(out.Samples) == 0 {
		t.Fatal("no sample was taken")
	}
	last := out.Samples[len(out.Samples)-1]
	if last.Objects < 500 || last.Events <= 600 || last.Joins < 10 || last.Files == 0 || last.Encoded == 0 {
		t.Errorf("the soak did nothing: %+v", last)
	}
}

func TestASoakThatCannotRunReturnsAnError(t *testing.T) {
	if err := (flags{minutes: 1, pods: 1}).run(t.Context()); err == nil {
		t.Error("a soak without changes was started")
	}
	t.Setenv("KUBECONFIG", "")
	if err := (flags{minutes: 1, pods: 1, churn: 1}).run(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "make soak") {
		t.Errorf("without a cluster: %v", err)
	}
}

func TestWitnessDetectsWrongEvents(t *testing.T) {
	for name, tell := range map[string]func(w *witness){
		"":           func(w *witness) { w.note(object.Updated, "a", "1", "2"); w.note(object.Deleted, "a", "3", "") },
		"knew: true": func(w *witness) { w.note(object.Added, "a", "", "2") },
		"last":       func(w *witness) { w.note(object.Updated, "a", "7", "8") },
		"back":       func(w *witness) { w.note(object.Updated, "a", "1", "5"); w.note(object.Updated, "a", "5", "4") },
		"knew: false": func(w *witness) {
			w.note(object.Deleted, "a", "1", "")
			w.note(object.Deleted, "a", "1", "")
		},
	} {
		w := newWitness(0)
		w.note(object.Added, "a", "", "1")
		tell(w)
		if _, odd := w.sums(); (odd == "") != (name == "") || !strings.Contains(odd, name) {
			t.Errorf("%q: noted %q", name, odd)
		}
	}
}

func TestDifferencesOfBothSidesAreFound(t *testing.T) {
	want := map[object.Key]object.Version{"a": "1", "b": "2", "c": "3"}
	if d := differences(want, want); len(d) > 0 {
		t.Errorf("%q", d)
	}
	got := differences(map[object.Key]object.Version{"a": "1", "b": "1", "d": "4"}, want)
	if strings.Join(got, "; ") != "b has version 1, want 2; c is missing; d was deleted but is still stored" {
		t.Errorf("%q", got)
	}
	if d := differences(nil, map[object.Key]object.Version{"1": "", "2": "", "3": "", "4": "", "5": "", "6": "",
		"7": ""}); len(d) != 6 || d[5] != "and 2 more" {
		t.Errorf("%q", d)
	}
}

func TestThePlotIsWellFormed(t *testing.T) {
	for _, samples := range [][]sample{nil, series(1, 0), series(60, 1)} {
		o := outcome{Samples: samples}
		if len(samples) > 0 {
			o.Flat = verdicts(samples)
		}
		d := xml.NewDecoder(strings.NewReader(plot(o)))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%d samples: %v", len(samples), err)
			}
		}
	}
}
