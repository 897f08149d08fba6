package rules

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// published are the packages whose exported names are promises to users.
var published = []string{"object", "source", "source/kube", "reflector", "queue", "store", "fanout",
	"informer", "factory", "metrics", "informertest", "informertest/kit",
	"compat/cache", "compat/dynamicinformer", "compat/informers", "compat/metadatainformer"}

// api.txt lists every exported name of the published packages, so that a change of the API is seen where it is
// reviewed.
func TestTheAPIIsTheOneInTheFile(t *testing.T) {
	root := moduleRoot(t)
	var lines []string
	for _, pkg := range published {
		found, err := exported(filepath.Join(root, pkg))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Errorf("package %s exports nothing; the test looks at the wrong place", pkg)
		}
		for _, name := range found {
			lines = append(lines, "pkg "+pkg+", "+name)
		}
	}
	path := filepath.Join(root, "api.txt")
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	for _, l := range lines {
		if !slices.Contains(listed, l) {
			t.Errorf("api.txt lacks: %s", l)
		}
	}
	for _, l := range listed {
		if !slices.Contains(lines, l) {
			t.Errorf("the code lacks: %s", l)
		}
	}
	if t.Failed() {
		t.Log("an exported name is a promise; if the change is meant, run go test ./dev/rules -update")
	}
}

// exported gives what a package exports, a line for each function, method, type, field, constant and variable.
func exported(dir string) (lines []string, err error) {
	fset := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			lines = append(lines, exportedIn(decl)...)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

func exportedIn(decl ast.Decl) (lines []string) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() || d.Recv != nil && !exportedReceiver(d.Recv) {
			return nil
		}
		bare := *d
		bare.Body, bare.Doc = nil, nil
		kind := ""
		if d.Recv != nil {
			kind = "method "
		}
		return []string{kind + source(&bare)}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					lines = append(lines, exportedType(s)...)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() {
						lines = append(lines, d.Tok.String()+" "+name.Name)
					}
				}
			}
		}
	}
	return lines
}

func exportedType(s *ast.TypeSpec) (lines []string) {
	name := s.Name.Name
	if s.TypeParams != nil {
		name += "[" + fieldList(s.TypeParams) + "]"
	}
	var members *ast.FieldList
	kind := ""
	switch t := s.Type.(type) {
	case *ast.StructType:
		members, kind = t.Fields, "struct"
	case *ast.InterfaceType:
		members, kind = t.Methods, "interface"
	default:
		if s.Assign.IsValid() {
			name += " ="
		}
		return []string{"type " + name + " " + source(s.Type)}
	}
	lines = append(lines, "type "+name+" "+kind)
	for _, m := range members.List {
		if len(m.Names) == 0 {
			lines = append(lines, "type "+s.Name.Name+" "+kind+", "+source(m.Type))
		}
		for _, n := range m.Names {
			if n.IsExported() {
				lines = append(lines, "type "+s.Name.Name+" "+kind+", "+n.Name+" "+source(m.Type))
			}
		}
	}
	return lines
}

func fieldList(l *ast.FieldList) string {
	var parts []string
	for _, f := range l.List {
		for _, n := range f.Names {
			parts = append(parts, n.Name+" "+source(f.Type))
		}
	}
	return strings.Join(parts, ", ")
}

var spaces = regexp.MustCompile(`\s+`)

// source prints a part of a program in one line.
func source(node any) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), node); err != nil {
		return fmt.Sprint(err)
	}
	return spaces.ReplaceAllString(b.String(), " ")
}
