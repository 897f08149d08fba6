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

// checker finds out which declarations of the test files our package can serve.
type checker struct {
	set      *token.FileSet
	path     string
	under    []*ast.File // the package under test, where the tests are inside it
	tests    []*testFile
	importer types.Importer
	dropped  map[string]string // declarations left out, and why
}

// imports are the packages that the files import.
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

// settle drops what does not compile until the rest does.
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
	return errors.New("the test files do not settle")
}

func (c *checker) check() (faults []types.Error) {
	files := slices.Clone(c.under)
	for _, f := range c.tests {
		files = append(files, f.ast)
	}
	conf := types.Config{Importer: c.importer, Error: func(err error) {
		if e, ok := errors.AsType[types.Error](err); ok && !strings.HasPrefix(e.Msg, "\t") { // a tab: more of the last
			faults = append(faults, e)
		}
	}}
	// Every error went through the function above.
	_, _ = conf.Check(c.path, c.set, files, nil)
	return faults
}

// drop takes out the declaration that a fault is in; false if it is not in a test.
func (c *checker) drop(fault types.Error) bool {
	for _, f := range c.tests {
		if f.ast.FileStart > fault.Pos || fault.Pos >= f.ast.FileEnd {
			continue
		}
		decl, spec := f.at(fault.Pos)
		if decl == nil {
			return true // went with another fault of this round
		}
		for _, name := range declared(decl, spec) {
			c.dropped[name] = c.why(fault.Msg)
		}
		f.remove(c.set, decl, spec)
		return true
	}
	return false
}

// undefined is what the type checker says of a name that is not there.
var undefined = regexp.MustCompile(`^undefined: (\w+)$`)

// why gives the reason behind a complaint: if it is that something was left out,
// then why that was.
func (c *checker) why(msg string) string {
	if m := undefined.FindStringSubmatch(msg); m != nil {
		if deeper, ok := c.dropped[m[1]]; ok {
			return deeper
		}
		return "uses " + m[1]
	}
	return msg
}

// declared names what a declaration declares.
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

// reasons says of each test that was left out why it was.
func (c *checker) reasons() map[string]string {
	out := map[string]string{}
	for name, why := range c.dropped {
		if isTest(name) {
			out[name] = why
		}
	}
	return out
}

// remaining are the tests that are left.
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
