package kit

import "testing"

// RunCase runs one case of the kit and returns what failed.
func RunCase(t *testing.T, name string, newSubject func(Setup) (Subject, error)) []string {
	for _, p := range promises() {
		if p.name == name {
			return runPromise(t, p, newSubject)
		}
	}
	t.Fatalf("the kit has no case %q", name)
	return nil
}
