package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// repository makes a git repository with one commit.
func repository(t *testing.T) (folder string, git func(args ...string)) {
	t.Helper()
	folder = t.TempDir()
	git = func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-11-17T10:00:00Z", "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "first")
	return folder, git
}

func TestVersionIsTheTagOrTheTimeAndTheCommit(t *testing.T) {
	folder, git := repository(t)
	expect := func(given, want string) {
		t.Helper()
		s, err := sourceOf(folder, given)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = "v0.0.0-20261117100000-" + s.commit[:12]
		}
		if s.version != want || len(s.commit) != 40 || s.time.Format(time.RFC3339) != "2026-11-17T10:00:00Z" {
			t.Errorf("version %q of commit %q of %s, want version %q", s.version, s.commit, s.time, want)
		}
	}
	expect("", "")
	git("tag", "-a", "-m", "release", "v1.2.3")
	expect("", "v1.2.3")
	expect("v9.9.9", "v9.9.9")
	if err := os.WriteFile(filepath.Join(folder, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect("", "v1.2.3-modified")
}

func TestWithoutGitTheVersionMustBeGiven(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(folder))
	if _, err := sourceOf(folder, ""); err == nil || !strings.HasSuffix(err.Error(), "; give it with -version") {
		t.Errorf("the error is %v", err)
	}
	if s, err := sourceOf(folder, "v1.2.3"); err != nil || s.version != "v1.2.3" || s.commit != "unknown" {
		t.Errorf("a version that is given: %+v, %v", s, err)
	}
}

func TestBillHasTheProgramAndWhatItIsMadeOf(t *testing.T) {
	program, err := os.Executable() // built by Go, so it has what the bill is made from
	if err != nil {
		t.Fatal(err)
	}
	from := source{version: "v1.2.3+rc.1", commit: "feed", time: time.Unix(0, 0).UTC()}
	first, err := billOf(program, from)
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := billOf(program, from); !bytes.Equal(first, second) {
		t.Error("two bills of one program differ")
	}
	var b bill
	if err := json.Unmarshal(first, &b); err != nil {
		t.Fatal(err)
	}
	main := b.Metadata.Component
	if main.PURL != "pkg:golang/github.com/mirador-k8s/mirador@v1.2.3%2Brc.1" || main.Type != "application" ||
		len(main.Hashes) != 1 || len(main.Hashes[0].Content) != 64 {
		t.Errorf("the program is %+v", main)
	}
	if len(b.Components) == 0 || !strings.HasPrefix(b.Components[0].PURL, "pkg:golang/stdlib@1.") {
		t.Errorf("the components are %+v; the standard library is missing", b.Components)
	}
	if len(b.Dependencies) != 1 || len(b.Dependencies[0].DependsOn) != len(b.Components) ||
		b.Dependencies[0].Ref != main.Ref {
		t.Errorf("the dependencies are %+v", b.Dependencies)
	}
	c := module(&debug.Module{Path: "github.com/Azure/go-ansiterm", Version: "v0.0.1", Sum: "h1:x="})
	if c.PURL != "pkg:golang/github.com/azure/go-ansiterm@v0.0.1" || c.Name != "github.com/Azure/go-ansiterm" ||
		c.Properties[0].Value != "h1:x=" {
		t.Errorf("a module with capitals is %+v", c)
	}
}

func TestAModuleWithoutALicenceIsAnError(t *testing.T) {
	var out bytes.Buffer
	folder := t.TempDir()
	err := appendLicences(&out, "example.com/a v1", folder)
	if err == nil || !strings.Contains(err.Error(), "there is none") {
		t.Errorf("no file: %v", err)
	}
	for _, name := range []string{"LICENSE.md", "NOTICE", "license_test.go"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("text of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := appendLicences(&out, "example.com/a v1", folder); err != nil {
		t.Fatal(err)
	}
	const want = "==== example.com/a v1: LICENSE.md\n\ntext of LICENSE.md\n\n" +
		"==== example.com/a v1: NOTICE\n\ntext of NOTICE\n\n"
	if out.String() != want {
		t.Errorf("got %q", out.String())
	}
	if got := escaped("github.com/Azure/go-ansiterm"); got != "github.com/!azure/go-ansiterm" {
		t.Errorf("the folder of a module with capitals is %q", got)
	}
}

func TestArchivesAreTheSameTwice(t *testing.T) {
	files := []file{{name: "LICENSE", content: []byte("text")}, {name: "kubectl-mirador", link: "mirador"},
		{name: "mirador", content: []byte("program"), executable: true}}
	at := time.Date(2026, 11, 17, 10, 0, 0, 0, time.UTC)
	for name, pack := range map[string]func(io.Writer, []file, time.Time) error{"tar": writeTar, "zip": writeZip} {
		var first, second bytes.Buffer
		if err := pack(&first, files, at); err != nil {
			t.Fatal(err)
		}
		if err := pack(&second, files, at); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("two %s archives of the same files differ", name)
		}
	}
}

func TestArchiveHasModesAndLinks(t *testing.T) {
	files := []file{{name: "LICENSE", content: []byte("text")}, {name: "kubectl-mirador", link: "mirador"},
		{name: "mirador", content: []byte("program"), executable: true}}
	var packed bytes.Buffer
	if err := writeTar(&packed, files, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	plain, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(plain)
	for _, want := range []struct {
		name, link, content string
		mode                int64
	}{{"LICENSE", "", "text", 0o644}, {"kubectl-mirador", "mirador", "", 0o777}, {"mirador", "", "program", 0o755}} {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		content, _ := io.ReadAll(r)
		if h.Name != want.name || h.Linkname != want.link || h.Mode != want.mode || string(content) != want.content {
			t.Errorf("%s: link %q, mode %o, content %q; want %+v", h.Name, h.Linkname, h.Mode, content, want)
		}
	}
	packed.Reset()
	if err := writeZip(&packed, files[2:], time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if len(z.File) != 1 || z.File[0].Name != "mirador" || z.File[0].Mode() != 0o755 {
		t.Errorf("the zip archive has %+v", z.File)
	}
}

func TestKrewManifestHasEveryArchive(t *testing.T) {
	manifest := krewManifest("v1.2.3", []archive{{platform{"linux", "arm64"}, "a.tar.gz", "123"},
		{platform{"windows", "amd64"}, "b.zip", "456"}})
	for _, want := range []string{"{os: linux, arch: arm64}", "/releases/download/v1.2.3/a.tar.gz\n    sha256: 123\n",
		"bin: mirador\n", "{os: windows, arch: amd64}", "/v1.2.3/b.zip\n    sha256: 456\n", "bin: mirador.exe\n"} {
		if !strings.Contains(manifest, want) {
			t.Errorf("the manifest has no %q:\n%s", want, manifest)
		}
	}
}

// `go install …@latest` refuses a module with replaced or excluded versions.
func TestModuleCanBeInstalledByVersion(t *testing.T) {
	out, err := exec.Command("go", "-C", "../..", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Module           struct{ Path string }
		Replace, Exclude []json.RawMessage
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	if mod.Module.Path != "github.com/mirador-k8s/mirador" || len(mod.Replace) > 0 || len(mod.Exclude) > 0 {
		t.Errorf("go.mod has %s; go install refuses the module", out)
	}
}
