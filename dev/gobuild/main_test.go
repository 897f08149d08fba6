package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func module(t *testing.T, code string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.test/m\n\ngo 1.26\n", "main.go": code} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestItBuilds(t *testing.T) {
	dir := module(t, "package main\n\nfunc main() {}\n")
	if err := build(dir, "out", ".", []string{"-ldflags", "-s -w"}); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Join(dir, "out")); err != nil || st.Mode()&0o100 == 0 {
		t.Errorf("no executable was written: %v", err)
	}
}

func TestAFailedBuildReturnsTheCompilerErrors(t *testing.T) {
	err := build(module(t, "package main\n\nfunc main() { nonsense() }\n"), "out", ".", nil)
	if err == nil || !strings.Contains(err.Error(), "undefined: nonsense") {
		t.Errorf("err = %v", err)
	}
}
