package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// licenceFile matches the files that have to go along with a program built from a module.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense)([.-].*)?$`)

// licencesOf returns the licences of everything that a program was built from besides its own module. A module without
// one is an error: nobody may distribute it.
func licencesOf(program string) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read what the program %s is made of: %w", program, err)
	}
	folders, err := exec.Command("go", "env", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find the modules: go env: %w", err)
	}
	cache, root, _ := strings.Cut(strings.TrimSpace(string(folders)), "\n")
	var out bytes.Buffer
	if err := appendLicences(&out, "Go "+strings.TrimPrefix(info.GoVersion, "go"), root); err != nil {
		return nil, err
	}
	for _, m := range modules(info) {
		folder := filepath.Join(cache, filepath.FromSlash(escaped(m.Path))+"@"+escaped(m.Version))
		if err := appendLicences(&out, m.Path+" "+m.Version, folder); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func appendLicences(out *bytes.Buffer, name, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("find the licence of %s: %w", name, err)
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return fmt.Errorf("read the licence of %s: %w", name, err)
		}
		fmt.Fprintf(out, "==== %s: %s\n\n%s\n\n", name, e.Name(), bytes.TrimSpace(text))
		found = true
	}
	if !found {
		return fmt.Errorf("find the licence of %s: there is none in %s", name, folder)
	}
	return nil
}

// escaped returns a part of a path in the module cache, which has an exclamation mark before what was a capital.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsUpper(r) {
			b.WriteByte('!')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
