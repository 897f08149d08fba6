package kit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// Broken is a promise that a subject does not keep. The kit runs the case anyway and fails if it passes, so that the
// list stays true.
type Broken struct {
	// Case is the name of a subtest, such as "P6_RecreatedUnseenIsDeleteAndAdd".
	Case string
	// Why says what the subject does instead.
	Why string
	// Crashes says that the subject ends the process, so that the case cannot run here; a separate test must show it.
	Crashes bool
}

// promise is one case of the kit.
type promise struct {
	name string
	run  func(k *kit)
}

// promises returns every case, in the order of their numbers.
func promises() []promise {
	return slices.Concat(convergence(), orders(), initialDelivery(), deletes(), isolation(), stopping(), kinds(),
		storms(), nothingSilent(), transforms(), staleness(), boundedStart())
}

// caseNames returns the names of the cases, each with its promise and what it checks.
func caseNames() []string {
	var out []string
	for _, p := range promises() {
		out = append(out, p.name)
	}
	return out
}

// Conformance checks an informer against the promises P1–P7, P9–P14 and P16, with subtests that run against an
// informertest.Server inside a synctest bubble, so that hours of faults take no real time. P8 and P15 concern only the
// store and cannot be seen through a Subject.
//
// newSubject makes the informer under test. It is called inside the bubble and must not start anything that lives on
// after Run has returned.
func Conformance(t *testing.T, newSubject func(Setup) (Subject, error), broken ...Broken) {
	known := caseNames()
	for _, b := range broken {
		if !slices.Contains(known, b.Case) {
			t.Errorf("the kit has no case %q; it has: %s", b.Case, strings.Join(known, ", "))
		}
	}
	for _, p := range promises() {
		at := slices.IndexFunc(broken, func(b Broken) bool { return b.Case == p.name })
		if at >= 0 && broken[at].Crashes {
			t.Logf("%s: not run, because the process would end: %s", p.name, broken[at].Why)
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			failures := runPromise(t, p, newSubject)
			switch {
			case at < 0:
				for _, f := range failures {
					t.Error(f)
				}
			case len(failures) == 0:
				t.Errorf("listed as broken (%s), but it holds: remove it from the list", broken[at].Why)
			default:
				t.Logf("broken as listed (%s): %s", broken[at].Why, strings.Join(failures, "; "))
			}
		})
	}
}

// runPromise runs one case in its own bubble and returns what failed.
func runPromise(t *testing.T, p promise, newSubject func(Setup) (Subject, error)) (failures []string) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(newSubject)
		defer func() {
			k.tearDown()
			failures = k.failures
		}()
		defer func() {
			if r := recover(); r != nil && r != errGaveUp {
				panic(r)
			}
		}()
		p.run(k)
	})
	return failures
}

// errGaveUp is the value with which fatalf panics to end a case.
var errGaveUp = fmt.Errorf("the case gave up")
