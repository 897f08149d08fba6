//go:build ignore

// Gen generates the accessors of the factory, one file for each group, from the source of
// client-go's informers in the module cache.
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	accessor = regexp.MustCompile(`(?m)^\t(\w+)\(\) (\w+)\.Interface$`)
	method   = regexp.MustCompile(`(?m)^\t(\w+)\(\) Typed(\w+)Informer$`)
	imported = regexp.MustCompile(`(?m)^\t(\w+) "(k8s\.io/[^"]+)"$`)
	object   = regexp.MustCompile(`type (\w+)IndexInformer cache\.TypedSharedIndexInformer\[\*(\w+)\.(\w+)\]`)
	named    = regexp.MustCompile(`schema\.GroupVersionResource\{Group: "([^"]*)", Version: "([^"]*)", ` +
		`Resource: "([^"]*)"\}`)
	client = regexp.MustCompile(`client\.(\w+)\(\)\.(\w+)\((namespace)?\)\.List\(ctx, opts\)`)
	// Client-go's generated informers guess the plural of a kind; generic.go has the right one.
	known = regexp.MustCompile(`WithResource\("([^"]+)"\):\s+return &genericInformer\{[^}]*` +
		`f\.(\w+\(\)\.\w+\(\)\.\w+\(\))\.Informer`)
	lister = regexp.MustCompile(`return (\w+)\.New(\w+)Lister\(`)
)

// plural maps the path of an accessor to the name of its resource.
var plural = map[string]string{}

const base = "k8s.io/client-go/informers"

// resource is a resource in one version of its group.
type resource struct {
	method, kind             string
	api, apiType, listers    string
	group, version, resource string
	clientGroup, clientKind  string
	namespaced               bool
	path                     string // Core().V1().Pods()
}

func main() {
	log.SetFlags(0)
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", base).Output()
	if err != nil {
		log.Fatalf("finding %s: %v", base, err)
	}
	root := strings.TrimSpace(string(dir))
	old, _ := filepath.Glob("zz_*.go")
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			log.Fatal(err)
		}
	}
	factory := read(root, "factory.go")
	folders := map[string]string{}
	for _, m := range imported.FindAllStringSubmatch(factory, -1) {
		folders[m[1]] = strings.TrimPrefix(m[2], base+"/")
	}
	for _, m := range known.FindAllStringSubmatch(read(root, "generic.go"), -1) {
		plural[m[2]] = m[1]
	}
	var all []resource
	for _, m := range accessor.FindAllStringSubmatch(factory, -1) {
		all = append(all, group(root, m[1], folders[m[2]])...)
	}
	table(all)
}

func read(parts ...string) string {
	data, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		log.Fatal(err)
	}
	return string(data)
}

// group writes the file of a group.
func group(root, name, folder string) (all []resource) {
	var body bytes.Buffer
	imports := map[string]string{
		"k8s.io/client-go/kubernetes": "", ours + "/compat/internal/pool": "", ours + "/compat/cache": "",
		base + "/" + folder: "group",
	}
	low := strings.ToLower(name[:1]) + name[1:]
	fmt.Fprintf(&body, "type %sGroup struct{ *sharedInformerFactory }\n\n", low)
	fmt.Fprintf(&body,
		"// %s returns the versions of the group.\nfunc (f *sharedInformerFactory) %s() group.Interface { return "+
			"%sGroup{f} }\n\n", name, name, low)
	for _, m := range accessor.FindAllStringSubmatch(read(root, folder, "interface.go"), -1) {
		version := strings.ToLower(m[1])
		informers := version + "informers"
		imports[base+"/"+folder+"/"+version] = informers
		fmt.Fprintf(&body, "type %s%s struct{ *sharedInformerFactory }\n\n", low, m[1])
		fmt.Fprintf(&body,
			"// %s returns the resources of the version.\nfunc (g %sGroup) %s() %s.Interface { return %s%s(g) }\n\n",
			m[1], low, m[1], informers, low, m[1])
		for _, r := range resources(filepath.Join(root, folder, version)) {
			r.path = fmt.Sprintf("%s().%s().%s()", name, m[1], r.method)
			if r.resource = plural[r.path]; r.resource == "" {
				log.Fatalf("%s: it is missing from ForResource; has client-go changed its generator?", r.path)
			}
			all = append(all, r)
			imports[r.api], imports[r.listers] = version+"api", version+"listers"
			namespace, in := "", "_ string"
			if r.namespaced {
				namespace, in = "ns", "ns string"
			}
			kind := low + m[1] + r.method
			fmt.Fprintf(&body, "// %s returns the informer and lister of %s.\nfunc (v %s%s) %s() %s.Typed%sInformer {\n",
				r.method, r.resource, low, m[1], r.method, informers, r.kind)
			fmt.Fprintf(&body, "return %s{in(v.sharedInformerFactory, %q, %q, %q)}\n}\n\n", kind, r.group,
				r.version, r.resource)
			fmt.Fprintf(&body, "type %s struct{ resource }\n\n", kind)
			fmt.Fprintf(&body,
				"func (r %s) Informer() cache.SharedIndexInformer {\nreturn informer(r.resource, &%sapi.%s{}, func(c "+
					"kubernetes.Interface, %s) pool.Client[*%sapi.%sList] {\nreturn c.%s().%s(%s)\n})\n}\n\n",
				kind, version, r.apiType, in, version, r.apiType, r.clientGroup, r.clientKind, namespace)
			fmt.Fprintf(&body,
				"func (r %s) TypedInformer() %s.%sIndexInformer {\nreturn %s.To%sIndexInformer(r.Informer())\n}\n\n",
				kind, informers, r.kind, informers, r.kind)
			fmt.Fprintf(&body,
				"func (r %s) Lister() %slisters.%sLister {\nreturn %slisters.New%sLister(r.Informer().GetIndexer())\n}\n\n",
				kind, version, r.kind, version, r.kind)
		}
	}
	write("zz_"+low+".go", imports, body.Bytes())
	return all
}

// resources reads the resources of a version, in the order of their accessors.
func resources(folder string) (all []resource) {
	for _, m := range method.FindAllStringSubmatch(read(folder, "interface.go"), -1) {
		text := read(folder, strings.ToLower(m[2])+".go")
		aliases := map[string]string{}
		for _, i := range imported.FindAllStringSubmatch(text, -1) {
			aliases[i[1]] = i[2]
		}
		o, n := object.FindStringSubmatch(text), named.FindStringSubmatch(text)
		c, l := client.FindStringSubmatch(text), lister.FindStringSubmatch(text)
		if o == nil || n == nil || c == nil || l == nil || o[1] != m[2] {
			log.Fatalf("%s: cannot parse %s; has client-go changed its generator?", folder, m[2])
		}
		all = append(all, resource{method: m[1], kind: m[2], api: aliases[o[2]], apiType: o[3], listers: aliases[l[1]],
			group: n[1], version: n[2], resource: n[3], clientGroup: c[1], clientKind: c[2], namespaced: c[3] != ""})
	}
	return all
}

// table writes the map behind ForResource.
func table(all []resource) {
	var body bytes.Buffer
	body.WriteString("// byResource maps a resource to the function that returns its informer.\nvar byResource = " +
		"map[schema.GroupVersionResource]func(f *sharedInformerFactory) cache.SharedIndexInformer{\n")
	for _, r := range all {
		fmt.Fprintf(&body,
			"gvr(%q, %q, %q): func(f *sharedInformerFactory) cache.SharedIndexInformer { return f.%s.Informer() },\n",
			r.group, r.version, r.resource, r.path)
	}
	body.WriteString("}\n")
	write("zz_resources.go", map[string]string{"k8s.io/apimachinery/pkg/runtime/schema": "", ours + "/compat/cache": ""},
		body.Bytes())
}

const ours = "github.com/mirador-k8s/mirador"

func write(name string, imports map[string]string, body []byte) {
	var out bytes.Buffer
	out.WriteString("// Code generated by gen.go; DO NOT EDIT.\n\n//lint:file-ignore SA1019 deprecated " +
		"resources have informers too\n\npackage informers\n\nimport (\n")
	var others, own []string
	for path, alias := range imports {
		line := strings.TrimSpace(fmt.Sprintf("%s %q", alias, path))
		if strings.HasPrefix(path, ours) {
			own = append(own, line)
		} else {
			others = append(others, line)
		}
	}
	byPath := func(a, b string) int { return strings.Compare(a[strings.Index(a, `"`):], b[strings.Index(b, `"`):]) }
	slices.SortFunc(others, byPath)
	slices.SortFunc(own, byPath)
	out.WriteString(strings.Join(others, "\n") + "\n\n" + strings.Join(own, "\n") + "\n)\n\n")
	out.Write(body)
	text, err := format.Source(out.Bytes())
	if err != nil {
		log.Fatalf("%s: %v", name, err)
	}
	if err := os.WriteFile(name, text, 0o644); err != nil {
		log.Fatal(err)
	}
}
