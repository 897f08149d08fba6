package rules

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of packages into ARCHITECTURE.md")

func TestImportsPointUpTheTable(t *testing.T) {
	above := map[string]bool{}
	for _, r := range rules {
		for _, may := range r.may {
			if first, _, _ := strings.Cut(may, "/"); !strings.Contains(first, ".") && may != anything &&
				may != r.pkg && !above[may] {
				t.Errorf("%s may import %s, which does not stand above it", r.pkg, may)
			}
		}
		above[r.pkg] = true
	}
}

func TestEveryRuleHasAPackage(t *testing.T) {
	used := map[string]bool{}
	for _, p := range modulePackages(t) {
		if r, ok := ruleFor(strings.TrimPrefix(p.ImportPath, module+"/")); ok {
			used[r.pkg] = true
		}
	}
	for _, r := range rules {
		if !used[r.pkg] {
			t.Errorf("the rule of %s covers no package; remove it", r.pkg)
		}
	}
}

// ARCHITECTURE.md has the table between two comments.
func TestTheArchitectureShowsTheTable(t *testing.T) {
	const begin, end = "<!-- packages: written by go test ./dev/rules -update -->\n", "<!-- end of packages -->\n"
	path := filepath.Join(moduleRoot(t), "ARCHITECTURE.md")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(b), begin)
	shown, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("ARCHITECTURE.md has no %q and %q", begin, end)
	}
	want := packageTable()
	if shown == want {
		return
	}
	if !*update {
		t.Fatalf("the table of packages in ARCHITECTURE.md differs from the rules; run go test ./dev/rules -update")
	}
	if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func packageTable() string {
	var b strings.Builder
	b.WriteString("| package | its one job | may import |\n|---|---|---|\n")
	for _, r := range rules {
		var may []string
		for _, m := range r.may {
			if m != r.pkg {
				may = append(may, shortName(m))
			}
		}
		if len(may) == 0 {
			may = []string{"standard library"}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.TrimSuffix(r.pkg, "/..."), r.job, strings.Join(may, ", "))
	}
	return b.String()
}

// shortName is how the table names a dependency: packages of this module by their path, others by their repository.
func shortName(may string) string {
	may = strings.TrimSuffix(may, "/...")
	switch parts := strings.Split(may, "/"); {
	case may == "k8s.io":
		return "Kubernetes' modules"
	case parts[0] == "github.com" && len(parts) > 2:
		return parts[2]
	case parts[0] == "k8s.io", parts[0] == "sigs.k8s.io":
		return strings.Join(parts[1:], "/")
	default:
		return may
	}
}
