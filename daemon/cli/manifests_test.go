package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// names formats manifests for comparisons.
func names(all []manifest) (out []string) {
	for _, m := range all {
		if m.err != nil {
			out = append(out, "error")
			continue
		}
		out = append(out, m.obj.GetKind()+"/"+m.obj.GetName())
	}
	return out
}

func TestManifestsAreReadFromFilesFoldersAndStandardInput(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b.yaml"),
		"# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n---\n---\napiVersion: v1\nkind: "+
			"ConfigMap\nmetadata: {name: two}\n")
	write(t, filepath.Join(dir, "a.json"), `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"three"}}`)
	write(t, filepath.Join(dir, "notes.txt"), "not read")
	write(t, filepath.Join(dir, "deep", "c.yml"),
		"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: four}}\n- {apiVersion: v1, "+
			"kind: Pod, metadata: {generateName: five-}}\n")
	for _, c := range []struct {
		name      string
		files     []string
		recursive bool
		stdin     string
		want      []string
	}{
		{"a folder", []string{dir}, false, "", []string{"Secret/three", "ConfigMap/one", "ConfigMap/two"}},
		{"a folder and below", []string{dir}, true, "",
			[]string{"Secret/three", "ConfigMap/one", "ConfigMap/two", "Pod/four", "Pod/"}},
		{"standard input", []string{"-"}, false,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}} {"apiVersion":"v1","kind":"Pod","metadata":{"name":"y"}}`,
			[]string{"Pod/x", "Pod/y"}},
		{"what is wrong is an error in its place", []string{filepath.Join(dir, "none"), "-"}, false,
			"kind: Pod\n---\napiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: z}\n---\n{[",
			[]string{"error", "error", "error", "Pod/z", "error"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := readManifests(c.files, c.recursive, strings.NewReader(c.stdin))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, names(all)); diff != "" {
				t.Errorf("%s\n%v", diff, all)
			}
		})
	}
}

func TestErrorOfAMalformedManifestDoesNotQuoteIt(t *testing.T) {
	all, err := readManifests([]string{"-"}, false,
		strings.NewReader("apiVersion: v1\nkind: Secret\nstringData:\n  password: \"s3cr3t\n  x: [}\n"))
	if err != nil || len(all) != 1 || all[0].err == nil {
		t.Fatalf("read %v, %v", all, err)
	}
	if text := all[0].err.Error(); strings.Contains(text, "s3cr3t") {
		t.Errorf("the error quotes the file: %s", text)
	}
}
