package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// target is one fuzz function.
type target struct {
	pkg  string // its folder, as the go command takes it: ./store
	name string
}

// findTargets walks a module and returns the functions that `go test -fuzz` would run, in the order of their packages.
// It skips nested modules.
func findTargets(root string, only *regexp.Regexp) ([]target, error) {
	var found []target
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return enter(root, path)
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if name := fuzzName(decl); name != "" && only.MatchString(name) {
				found = append(found, target{"./" + filepath.ToSlash(rel), name})
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for fuzz targets: %w", err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no fuzz target matches %q; see them with: grep -rn 'func Fuzz' --include='*_test.go'", only)
	}
	slices.SortFunc(found, func(a, b target) int { return strings.Compare(a.pkg+" "+a.name, b.pkg+" "+b.name) })
	return found, nil
}

// enter returns filepath.SkipDir for folders outside the module.
func enter(root, path string) error {
	if path == root {
		return nil
	}
	if name := filepath.Base(path); name == "testdata" || name == "bin" || strings.HasPrefix(name, ".") ||
		strings.HasPrefix(name, "_") {
		return filepath.SkipDir
	}
	mod, err := filepath.Glob(filepath.Join(path, "go.mod"))
	if len(mod) > 0 {
		return filepath.SkipDir
	}
	return errors.Join(err)
}

// fuzzName returns the name of a function that takes a *testing.F, or "".
func fuzzName(decl ast.Decl) string {
	f, ok := decl.(*ast.FuncDecl)
	if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Fuzz") || f.Type.Params.NumFields() != 1 {
		return ""
	}
	star, ok := f.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return ""
	}
	if sel, ok := star.X.(*ast.SelectorExpr); !ok || sel.Sel.Name != "F" {
		return ""
	}
	return f.Name.Name
}
