package rules

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mirador-k8s/mirador"

type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestPackagesImportOnlyWhatTheirRuleAllows(t *testing.T) {
	pkgs := modulePackages(t)
	if len(pkgs) < 3 {
		t.Fatalf("go list found %d packages; the test looks at the wrong place", len(pkgs))
	}
	for _, p := range pkgs {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		r, ok := ruleFor(name)
		if !ok {
			t.Errorf("package %s has no rule; say in table_test.go what it may import, and why", name)
			continue
		}
		for _, imp := range p.Imports {
			if bad := r.forbids(imp); bad {
				t.Errorf("%s imports %s, which its rule does not allow: %s", name, imp, r.because)
			}
		}
	}
}

// The caches of client-go are what this project replaces. They may be named
// only where their types are part of a signature, in compat.
func TestOnlyCompatNamesTheCachesOfClientGo(t *testing.T) {
	for _, p := range modulePackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		if strings.HasPrefix(name, "compat/") || strings.HasPrefix(name, "examples/") {
			continue
		}
		if slices.Contains(p.Imports, "k8s.io/client-go/tools/cache") {
			t.Errorf("%s imports client-go's caches; only compat and its examples may", name)
		}
	}
}

// k8s.io/apiserver brings gRPC, OpenTelemetry and OIDC along, which a program that uses the library must not link.
func TestNoPackageOfTheLibraryReachesTheCodeOfTheAPIServer(t *testing.T) {
	for _, p := range modulePackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		root, _, _ := strings.Cut(name, "/")
		if slices.Contains([]string{"daemon", "cmd", "examples", "dev"}, root) {
			continue
		}
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, apiserver) {
				t.Errorf("%s reaches %s; only packages of the daemon may", name, dep)
				break
			}
		}
	}
}

func TestThereIsNoWorkspace(t *testing.T) {
	if _, err := os.Stat(filepath.Join(moduleRoot(t), "go.work")); !errors.Is(err, os.ErrNotExist) {
		t.Error("go.work exists: devcluster pins Kubernetes by replace, and a workspace would force that on every module")
	}
}

func TestRulesRefuseWhatTheyShould(t *testing.T) {
	for _, c := range []struct {
		pkg, imp string
		forbids  bool
	}{
		{"object", module + "/store", true},
		{"object", "fmt", false},
		{"queue", module + "/object", false},
		{"queue", "k8s.io/api/core/v1", true},
		{"source/kube", "k8s.io/client-go/rest", false},
		{"source/kube", "k8s.io/client-go/tools/cache", true},
		{"daemon/server", module + "/source/kube", true},
		{"daemon/server", module + "/daemon/fleet", false},
		{"cmd/mirador", module + "/daemon/server", false},
		{"examples/x", module + "/informer", false},
		{"examples/x", module + "/dev/testcluster", true},
		{"store", "unsafe", false},
		{"informer", "unsafe", true},
		{"daemon/identity", apiserver + "pkg/authentication/user", false},
		{"daemon/server", apiserver + "pkg/authentication/user", false},
		{"factory", apiserver + "pkg/authentication/user", true},
		{"cmd/mirador", apiserver + "pkg/authentication/user", true},
	} {
		r, ok := ruleFor(c.pkg)
		if !ok {
			t.Fatalf("no rule for %s", c.pkg)
		}
		if got := r.forbids(c.imp); got != c.forbids {
			t.Errorf("rule for %s forbids %s: %v, want %v", c.pkg, c.imp, got, c.forbids)
		}
	}
	if _, ok := ruleFor("util"); ok {
		t.Error("an unknown package has a rule")
	}
}

func ruleFor(name string) (rule, bool) {
	for _, r := range rules {
		if covers(r.pkg, name) {
			return r, true
		}
	}
	return rule{}, false
}

// mayImportUnsafe are the packages whose uses of unsafe CONTRIBUTING.md explains.
var mayImportUnsafe = []string{"internal/share", "store"}

// apiserver begins the names of the packages of kube-apiserver's library, and mayImportAPIServer are the packages that
// may import them: one to authenticate, the others for the types of users and of audit events.
const apiserver = "k8s.io/apiserver/"

var mayImportAPIServer = []string{"daemon/identity", "daemon/login", "daemon/access", "daemon/audit", "daemon/server"}

func (r rule) forbids(imp string) bool {
	if strings.HasPrefix(imp, apiserver) && !slices.Contains(mayImportAPIServer, r.pkg) {
		return true
	}
	if imp == "C" || imp == "unsafe" && !slices.Contains(mayImportUnsafe, r.pkg) {
		return true
	}
	first, _, _ := strings.Cut(imp, "/")
	if !strings.Contains(first, ".") { // the standard library
		return false
	}
	name, ours := strings.CutPrefix(imp, module+"/")
	if r.pkg == "examples/..." && ours && (strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "dev/")) {
		return true // a reader could not do the same
	}
	for _, may := range r.may {
		if may == anything {
			return false
		}
		root, _, _ := strings.Cut(may, "/")
		if ours == !strings.Contains(root, ".") && covers(may, name) {
			return false
		}
	}
	return true
}

func covers(pattern, name string) bool {
	if base, tree := strings.CutSuffix(pattern, "/..."); tree {
		return name == base || strings.HasPrefix(name, base+"/")
	}
	return pattern == name
}

func modulePackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = moduleRoot(t)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatalf("reading go list: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.mod above the test's folder")
	return ""
}
