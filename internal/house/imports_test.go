package house

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

// A rule says what a package may import besides the standard library. Names
// without a dot in their first part are packages of this module.
type rule struct {
	pkg     string // a path below the module; "x/..." covers x and all below it
	may     []string
	because string
}

const (
	anyKubernetes = "k8s.io/..."
	anything      = "..."
)

// The first rule that covers a package counts. The table is the one in
// ARCHITECTURE.md and has the rooms that are still to be built too; a package that
// no rule covers fails the test.
var rules = []rule{
	{"object", nil,
		"the vocabulary is shared by all, so anything it pulled in would be pulled in everywhere"},
	{"queue", []string{"object"},
		"the queue runs on any struct; the original demo has two fields and no Kubernetes"},
	{"store", []string{"object", "store/internal/pack", "internal/share"},
		"the store is reused by compat, query and the daemon, with objects of any form"},
	{"store/internal/pack", []string{"github.com/klauspost/compress/..."},
		"bytes in, bytes out: how objects are told from their siblings is no business of anybody else"},
	{"fanout", []string{"object"},
		"delivery must not know where events come from, so that it can be tested alone"},
	{"source", []string{"object"},
		"the contract of a source must be implementable without a Kubernetes client"},
	{"source/kube", []string{"object", "source", "internal/share", "k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/client-go/rest/...", "k8s.io/client-go/kubernetes/scheme",
		"k8s.io/client-go/discovery", "google.golang.org/protobuf/..."},
		"the only room that speaks the wire format; it uses client-go's transport and none of its caches"},
	{"reflector", []string{"object", "source", "queue"},
		"the state machine is stepped in tests with sources that are no servers"},
	{"checkpoint", []string{"object", "store", "go.etcd.io/bbolt"},
		"what is on disk is a store's state and nothing else"},
	{"informer", []string{"object", "queue", "store", "fanout", "source", "reflector", "checkpoint"},
		"one pipeline over any source; knowing source/kube would tie it to a server"},
	{"metrics", []string{"informer", "object", "store", "fanout", "source", "github.com/prometheus/client_golang/..."},
		"the one room that knows Prometheus, so that a library user without it links none of it"},
	{"factory", []string{"object", "store", "fanout", "source", "informer", "source/kube", "k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/client-go/..."},
		"binds resources of a server to shared informers"},
	{"query", []string{"object", "store", "internal/jsonscan", "k8s.io/apimachinery/...", "github.com/google/cel-go/..."},
		"queries run on snapshots alone, so they can never reach a cluster"},
	{"fleet", []string{"object", "store", "informer", "source", "source/kube", "internal/jsonscan", anyKubernetes},
		"many clusters, each with informers of its own; to share them is the factory's job, and a fleet has one of each"},
	{"server/...", []string{"object", "store", "fleet", "query", "internal/jsonscan", "server/...", anyKubernetes, "github.com/prometheus/client_golang/...", "github.com/klauspost/compress/gzip",
		"github.com/munnerz/goautoneg", "golang.org/x/net/websocket"},
		"answers come from the fleet; importing a source here would be the way to send a read to a cluster"},
	{"compat/...", []string{"object", "queue", "store", "fanout", "source", "reflector", "informer", "factory", "compat/...", anyKubernetes, "github.com/go-logr/logr"},
		"client-go's names over our engine"},
	{"informertest", []string{"object", "source", "k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/client-go/rest/...", "k8s.io/client-go/kubernetes/scheme", "sigs.k8s.io/json"},
		"the informer under test comes in through an adapter, so that the kit can judge anybody's"},
	{"cmd/...", []string{anything}, "flags and wiring"},
	{"examples/...", []string{anything}, "an example may show anything that is public"}, // and see forbids
	{"internal/testcluster", []string{anyKubernetes},
		"tests of every room use it, so it may know none of them"},
	{"internal/share", nil,
		"finds equal parts of objects of any type by their memory alone"},
	{"internal/testpods", []string{"k8s.io/api/...", "k8s.io/apimachinery/..."},
		"tests and measurements of every room use it, so it may know none of them"},
	{"internal/overload", []string{"object", "source", "fanout", "informer"},
		"an overload needs no server, so that fake time can drive it"},
	{"internal/soak", []string{"object", "store", "source", "fanout", "reflector", "informer", "source/kube", "k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/client-go/..."},
		"a program as a user's would be, on a real cluster"},
	{"internal/cli", []string{"object", "fleet", "server/...", anyKubernetes, "github.com/spf13/...", "sigs.k8s.io/yaml"},
		"the commands of the program; cmd only wires them. It reads through a server, never past it"},
	{"internal/jsonscan", nil, "finding the parts of JSON needs nothing but its bytes"},
	{"internal/...", nil, "build tools run before anything is downloaded"},
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func TestImportsPointUpTheHouse(t *testing.T) {
	pkgs := modulePackages(t)
	if len(pkgs) < 3 {
		t.Fatalf("go list found %d packages; the test looks at the wrong place", len(pkgs))
	}
	for _, p := range pkgs {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		r, ok := ruleFor(name)
		if !ok {
			t.Errorf("package %s has no rule; say in this table what it may import, and why", name)
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
		{"server/web", module + "/source/kube", true},
		{"server/web", module + "/fleet", false},
		{"cmd/mirador", module + "/server", false},
		{"examples/x", module + "/informer", false},
		{"examples/x", module + "/internal/testcluster", true},
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
		t.Error("a package that nobody planned has a rule")
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

func (r rule) forbids(imp string) bool {
	if imp == "C" || imp == "unsafe" && r.pkg != "store" && r.pkg != "store/internal/pack" && r.pkg != "internal/share" {
		return true
	}
	first, _, _ := strings.Cut(imp, "/")
	if !strings.Contains(first, ".") { // the standard library
		return false
	}
	name, ours := strings.CutPrefix(imp, module+"/")
	if r.pkg == "examples/..." && ours && strings.HasPrefix(name, "internal/") {
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
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
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
