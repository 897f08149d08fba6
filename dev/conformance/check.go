package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// checker finds the declarations of the test files that compile against our package.
type checker struct {
	set      *token.FileSet
	path     string
	under    []*ast.File // the package under test, where the tests are inside it
	tests    []*testFile
	importer types.Importer
	dropped  map[string]string // removed declarations, with the reason
}

// imports returns the packages that the files import.
func (c *checker) imports() []string {
	var paths []string
	files := slices.Clone(c.under)
	for _, f := range c.tests {
		files = append(files, f.ast)
	}
	for _, f := range files {
		for _, i := range f.Imports {
			if path, err := strconv.Unquote(i.Path.Value); err == nil && path != "C" {
				paths = append(paths, path)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// settle removes declarations that do not compile until the rest does.
func (c *checker) settle() error {
	for range 100 {
		faults := c.check()
		if len(faults) == 0 {
			return nil
		}
		progress := false
		for _, fault := range faults {
			if c.drop(fault) {
				progress = true
			}
		}
		if !progress {
			return fmt.Errorf("our own package does not compile: %w", faults[0])
		}
	}
	return errors.New("removing declarations does not make the test files compile")
}

func (c *checker) check() (faults []types.Error) {
	files := slices.Clone(c.under)
	for _, f := range c.tests {
		files = append(files, f.ast)
	}
	conf := types.Config{Importer: c.importer, Error: func(err error) {
		// A message that starts with a tab continues the previous one.
		if e, ok := errors.AsType[types.Error](err); ok && !strings.HasPrefix(e.Msg, "\t") {
			faults = append(faults, e)
		}
	}}
	// The Error function above received every error.
	_, _ = conf.Check(c.path, c.set, files, nil)
	return faults
}

// drop removes the declaration that contains an error; it returns false if the error is not in a test file.
func (c *checker) drop(fault types.Error) bool {
	for _, f := range c.tests {
		if f.ast.FileStart > fault.Pos || fault.Pos >= f.ast.FileEnd {
			continue
		}
		decl, spec := f.at(fault.Pos)
		if decl == nil {
			return true // already removed because of another error of this round
		}
		for _, name := range declared(decl, spec) {
			c.dropped[name] = c.why(fault.Msg)
		}
		f.remove(c.set, decl, spec)
		return true
	}
	return false
}

// undefined matches the type checker's error for a name that does not exist.
var undefined = regexp.MustCompile(`^undefined: (\w+)$`)

// why returns the reason for an error: if it is a name that was removed, then the reason for that.
func (c *checker) why(msg string) string {
	if m := undefined.FindStringSubmatch(msg); m != nil {
		if deeper, ok := c.dropped[m[1]]; ok {
			return deeper
		}
		return "uses " + m[1]
	}
	return msg
}

// declared returns the names that a declaration declares.
func declared(decl ast.Decl, spec ast.Spec) []string {
	if f, ok := decl.(*ast.FuncDecl); ok {
		if f.Recv == nil {
			return []string{f.Name.Name}
		}
		return nil
	}
	switch s := spec.(type) {
	case *ast.TypeSpec:
		return []string{s.Name.Name}
	case *ast.ValueSpec:
		var names []string
		for _, n := range s.Names {
			names = append(names, n.Name)
		}
		return names
	}
	return nil
}

func isTest(name string) bool { return strings.HasPrefix(name, "Test") && name != "TestMain" }

// reasons returns the reason for each test that was removed.
func (c *checker) reasons() map[string]string {
	out := map[string]string{}
	for name, why := range c.dropped {
		if isTest(name) {
			out[name] = why
		}
	}
	return out
}

// remaining returns the tests that are left.
func (c *checker) remaining() []string {
	var names []string
	for _, f := range c.tests {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && isTest(fn.Name.Name) {
				names = append(names, fn.Name.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}
