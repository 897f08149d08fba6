package kit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// Broken is an entry in the list of promises that a subject does not keep. The
// kit runs the case all the same and fails if it passes, so that the list stays
// honest.
type Broken struct {
	// Case is the name of a subtest, such as "P6_RecreatedUnseenIsDeleteAndAdd".
	Case string
	// Why says what the subject does instead.
	Why string
	// Crashes says that the subject ends the process, so that the case cannot be
	// run here; whoever says so shows it in a test of its own.
	Crashes bool
}

// promise is one case of the kit.
type promise struct {
	name string
	run  func(k *kit)
}

// promises gives every case, in the order of their numbers.
func promises() []promise {
	return slices.Concat(convergence(), orders(), initialDelivery(), deletes(), isolation(), stopping(), kinds(),
		storms(), nothingSilent(), transforms(), staleness(), boundedStart())
}

// caseNames names the cases of the kit, each by its promise and what it shows.
func caseNames() []string {
	var out []string
	for _, p := range promises() {
		out = append(out, p.name)
	}
	return out
}

// Conformance checks an informer against the promises P1–P7, P9–P14 and P16,
// one subtest each, on a server of this package inside a synctest bubble: hours
// of faults pass in no time. P8 and P15 are about the store alone and cannot be
// seen through a Subject.
//
// newSubject makes the informer under test. It is called inside the bubble and
// may start nothing that lives on after Run has returned.
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
			t.Logf("%s: not run, the process would end: %s", p.name, broken[at].Why)
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
				t.Errorf("listed as broken (%s), but it holds: take it off the list", broken[at].Why)
			default:
				t.Logf("broken as listed (%s): %s", broken[at].Why, strings.Join(failures, "; "))
			}
		})
	}
}

// runPromise runs one case in a bubble of its own and gives what failed.
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

// errGaveUp is what a case panics with when going on makes no sense.
var errGaveUp = fmt.Errorf("the case gave up")
