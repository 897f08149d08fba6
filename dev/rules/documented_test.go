package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// go doc shows a comment for every exported name. A const or var may share the
// comment of its group, and generated accessors say what their interface says.
func TestEveryExportedNameIsDocumented(t *testing.T) {
	root := moduleRoot(t)
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		if file.Name.Name == "main" || ast.IsGenerated(file) {
			return nil
		}
		files++
		for _, u := range undocumented(file) {
			rel, _ := filepath.Rel(root, path)
			t.Errorf("%s:%d: %s has no comment; say what it is for", rel, fset.Position(u.Pos()).Line, u.Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Errorf("only %d files were looked at; the test looks at the wrong place", files)
	}
}

func undocumented(file *ast.File) (names []*ast.Ident) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || exportedReceiver(d.Recv)) {
				names = append(names, d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
						names = append(names, s.Name)
					}
				case *ast.ValueSpec:
					if d.Doc == nil && s.Doc == nil && s.Comment == nil && s.Names[0].IsExported() {
						names = append(names, s.Names[0])
					}
				}
			}
		}
	}
	return names
}

func exportedReceiver(recv *ast.FieldList) bool {
	typ := recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

func TestTheDocumentationCheckSeesWhatIsMissing(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x

type Bare struct{}

// Said is documented.
type Said struct{}

func (s *Said) Bare() {}
func (s hidden[T]) Fine() {}

const (
	BareConst = 1
	// SaidConst is documented.
	SaidConst = 2
)
`, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range undocumented(file) {
		got = append(got, u.Name)
	}
	if want := "Bare Bare BareConst"; strings.Join(got, " ") != want {
		t.Errorf("found %q, want %q", got, want)
	}
}
