package informers_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const clientGosCache = `k8s.io/client-go/tools/cache`

var (
	// clientGosEngine matches the methods of client-go's engine.
	clientGosEngine = regexp.MustCompile(regexp.QuoteMeta(clientGosCache) +
		`\.\(?\*?(sharedIndexInformer|Reflector|controller|DeltaFIFO|RealFIFO|threadSafeMap|` +
		`sharedProcessor|processorListener)\)?\.`)
	// ourEngine matches the methods of this module's engine, to verify that the test
	// examines the right program.
	ourEngine = regexp.MustCompile(`mirador/(reflector\.\(\*Reflector|informer\.\(\*Informer|store\.\(\*Writer|` +
		`queue\.\(\*DeltaFIFO|fanout\.\(\*Fanout)\[`)
)

// A program that uses compat contains no method of client-go's engine, with one
// exception. SetWatchErrorHandler, a method of client-go's interface, names client-go's
// Reflector, so the type can be reached by reflection. The linker keeps each method of
// such a type that has the name of a method called through an interface, for example
// Run, and everything that it calls. For these methods the test checks why the linker
// keeps them: always because of Reflector's type, never because of a call.
func TestProgramWithCompatCallsNothingOfClientGosEngine(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	build := exec.Command("go", "build", "-ldflags=-dumpdep -w", "-o", program, "./testdata/program")
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
		m := clientGosEngine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := symbol(line)
		switch m[1] {
		case "Reflector", "threadSafeMap":
			if path := calledFrom(parent, name); path != nil {
				t.Errorf("client-go's %s is called: %s", name, strings.Join(path, " <- "))
			}
		default:
			t.Errorf("the program contains client-go's %s", name)
		}
	}
	if len(found) != 5 {
		t.Errorf("the program contains only %v of this module's engine", found)
	}
}

// symbol returns the name in a line of nm.
func symbol(line string) string {
	_, name, _ := strings.Cut(strings.TrimSpace(line), " T ")
	if name == "" {
		_, name, _ = strings.Cut(strings.TrimSpace(line), " t ")
	}
	return strings.TrimSpace(name)
}

// reasons parses the linker's dump: for each symbol, the symbol through which it was
// first reached.
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

// calledFrom returns the path to a symbol, or nil if it begins at the type of client-go's
// Reflector.
func calledFrom(parent map[string]string, name string) (path []string) {
	for range 100 {
		path = append(path, name)
		from, ok := parent[name]
		if !ok {
			return path
		}
		if from == "type:*"+clientGosCache+".Reflector" {
			return nil
		}
		name = from
	}
	return path
}

func tail(s string) string { return s[max(0, len(s)-2000):] }
