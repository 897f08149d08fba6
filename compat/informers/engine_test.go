package informers_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const theirCache = `k8s.io/client-go/tools/cache`

var (
	// theirEngine matches the methods of client-go's engine.
	theirEngine = regexp.MustCompile(regexp.QuoteMeta(theirCache) +
		`\.\(?\*?(sharedIndexInformer|Reflector|controller|DeltaFIFO|RealFIFO|threadSafeMap|` +
		`sharedProcessor|processorListener)\)?\.`)
	// ourEngine matches what stands in their place; without it the test would look
	// at the wrong program.
	ourEngine = regexp.MustCompile(`mirador/(reflector\.\(\*Reflector|informer\.\(\*Informer|store\.\(\*Writer|` +
		`queue\.\(\*DeltaFIFO|fanout\.\(\*Fanout)\[`)
)

// A program on compat has no method of client-go's engine in it, with one
// exception that the linker cannot avoid: SetWatchErrorHandler, a method of
// client-go's interface, names client-go's Reflector, so that type can be reached by
// reflection, and of a type that can be reached so the linker keeps each method
// whose like is called through an interface: Run, for instance, and all that it
// calls. So for what Reflector brings along the test asks the linker why it is
// there: always and only because of Reflector's type, never because of a call.
func TestAProgramOnCompatRunsNothingOfClientGosEngine(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	build := exec.Command("go", "build", "-ldflags=-dumpdep", "-o", program, "./testdata/program")
	var why bytes.Buffer
	build.Stdout, build.Stderr = &why, &why
	if err := build.Run(); err != nil {
		t.Fatalf("go build: %v\n%s", err, tail(why.String()))
	}
	symbols, err := exec.Command("go", "tool", "nm", program).Output()
	if err != nil {
		t.Fatalf("go tool nm: %v", err)
	}
	parent := reasons(why.String())
	found := map[string]bool{}
	for line := range strings.Lines(string(symbols)) {
		if m := ourEngine.FindStringSubmatch(line); m != nil {
			found[m[1]] = true
		}
		m := theirEngine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := symbol(line)
		switch m[1] {
		case "Reflector", "threadSafeMap":
			if path := calledFrom(parent, name); path != nil {
				t.Errorf("a call leads to client-go's %s: %s", name, strings.Join(path, " <- "))
			}
		default:
			t.Errorf("the program contains client-go's %s", name)
		}
	}
	if len(found) != 5 {
		t.Errorf("of our own engine the program contains only %v", found)
	}
}

// symbol takes the name out of a line of nm.
func symbol(line string) string {
	_, name, _ := strings.Cut(strings.TrimSpace(line), " T ")
	if name == "" {
		_, name, _ = strings.Cut(strings.TrimSpace(line), " t ")
	}
	return strings.TrimSpace(name)
}

// reasons reads what the linker says: which symbol it met first at which other.
func reasons(dump string) map[string]string {
	parent := map[string]string{}
	for line := range strings.Lines(dump) {
		from, to, ok := strings.Cut(strings.TrimSpace(line), " -> ")
		if !ok {
			continue
		}
		to, _, _ = strings.Cut(to, " <")
		from, _, _ = strings.Cut(from, " <")
		if _, known := parent[to]; !known {
			parent[to] = from
		}
	}
	return parent
}

// calledFrom gives the way to a symbol, unless it begins at the type of client-go's
// Reflector.
func calledFrom(parent map[string]string, name string) (path []string) {
	for range 100 {
		path = append(path, name)
		from, ok := parent[name]
		if !ok {
			return path
		}
		if from == "type:*"+theirCache+".Reflector" {
			return nil
		}
		name = from
	}
	return path
}

func tail(s string) string { return s[max(0, len(s)-2000):] }
