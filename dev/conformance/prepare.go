package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// prepared is a suite that is ready to run.
type prepared struct {
	suite
	env     *environment
	overlay string
	tests   []string
	leftOut map[string]string // reason by test
}

// prepare filters the test files of a suite and lays them over our package.
func prepare(env *environment, s suite) (*prepared, error) {
	set := token.NewFileSet()
	files, err := parseTests(set, filepath.Join(env.clientGo, s.from), s)
	if err != nil {
		return nil, err
	}
	c := &checker{set: set, tests: files, dropped: map[string]string{}}
	if !s.external {
		c.path = ours + "/" + s.into
		if c.under, err = parsePackage(set, filepath.Join(env.root, s.into)); err != nil {
			return nil, err
		}
	} else {
		c.path = ours + "/" + s.into + "_test"
	}
	exports, err := env.exports(c.imports())
	if err != nil {
		return nil, err
	}
	c.importer = importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		file, ok := exports[path]
		if !ok {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(file)
	})
	if err := c.settle(); err != nil {
		return nil, err
	}
	p := &prepared{suite: s, env: env, leftOut: c.reasons()}
	p.tests = c.remaining()
	return p, p.layOver(files)
}

// exports builds packages and returns the paths of their export data.
func (e *environment) exports(paths []string) (map[string]string, error) {
	fmt.Printf("   building %d packages that the tests import\n", len(paths))
	out, err := e.goCommand("list", append([]string{"-deps", "-export", "-json=ImportPath,Export"}, paths...)...)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return exports, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the output of go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
	}
}

// layOver writes the filtered files and an overlay that puts them into our package,
// instead of its own tests.
func (p *prepared) layOver(files []*testFile) error {
	folder := filepath.Join(p.env.work, strings.ReplaceAll(p.into, "/", "_"))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	replace := map[string]string{}
	own, err := filepath.Glob(filepath.Join(p.env.root, p.into, "*_test.go"))
	if err != nil {
		return err
	}
	for _, name := range own {
		replace[name] = ""
	}
	for _, f := range files {
		to := filepath.Join(folder, f.name)
		if err := os.WriteFile(to, f.source(), 0o644); err != nil {
			return err
		}
		replace[filepath.Join(p.env.root, p.into, f.name)] = to
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	p.overlay = folder + ".json"
	return os.WriteFile(p.overlay, data, 0o644)
}

func (p *prepared) printLeftOut() {
	fmt.Printf("-- %d left out, because they use unexported names:\n", len(p.leftOut))
	for _, name := range sortedKeys(p.leftOut) {
		fmt.Printf("   %s: %s\n", name, p.leftOut[name])
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
