package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// testFile is one of client-go's test files.
type testFile struct {
	name string
	text []byte
	ast  *ast.File
	cut  []span // the removed parts
}

// span is a piece of a file, by offsets.
type span struct{ from, to int }

// parseTests parses the test files of a folder. The import of the package under test is replaced by ours.
func parseTests(set *token.FileSet, folder string, s suite) ([]*testFile, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there are no test files in %s; does the module cache hold all of %s?", folder, theirs)
	}
	var files []*testFile
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if s.external {
			text = []byte(strings.ReplaceAll(string(text), strconv.Quote(theirs+"/"+s.from), strconv.Quote(ours+"/"+s.into)))
		}
		file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, &testFile{name: filepath.Base(name), text: text, ast: file})
	}
	return files, nil
}

// parsePackage parses the files of a package without its tests.
func parsePackage(set *token.FileSet, folder string) ([]*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// source returns the file without the removed parts. Blanks take their place, so that line numbers do not change.
func (f *testFile) source() []byte {
	out := append([]byte(nil), f.text...)
	for _, s := range f.cut {
		for i := s.from; i < s.to; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	return out
}

// remove removes a declaration, or one line of a group, from the file.
func (f *testFile) remove(set *token.FileSet, decl ast.Decl, spec ast.Spec) {
	node := ast.Node(decl)
	group, grouped := decl.(*ast.GenDecl)
	if grouped && len(group.Specs) > 1 {
		node = spec
		for i, s := range group.Specs {
			if s == spec {
				group.Specs = append(group.Specs[:i:i], group.Specs[i+1:]...)
				break
			}
		}
	} else {
		for i, d := range f.ast.Decls {
			if d == decl {
				f.ast.Decls = append(f.ast.Decls[:i:i], f.ast.Decls[i+1:]...)
				break
			}
		}
	}
	if i, ok := spec.(*ast.ImportSpec); ok {
		for n, s := range f.ast.Imports {
			if s == i {
				f.ast.Imports = append(f.ast.Imports[:n:n], f.ast.Imports[n+1:]...)
				break
			}
		}
	}
	f.cut = append(f.cut, span{set.Position(node.Pos()).Offset, set.Position(node.End()).Offset})
}

// at returns the declaration, and the line of a group, at a position.
func (f *testFile) at(pos token.Pos) (ast.Decl, ast.Spec) {
	for _, d := range f.ast.Decls {
		if pos < d.Pos() || pos >= d.End() {
			continue
		}
		if g, ok := d.(*ast.GenDecl); ok {
			for _, s := range g.Specs {
				if pos >= s.Pos() && pos < s.End() {
					return d, s
				}
			}
		}
		return d, nil
	}
	return nil, nil
}
