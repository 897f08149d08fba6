package image

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestArchive builds the archive of a release for this machine, and uses what is in it.
func TestArchive(t *testing.T) {
	folder := t.TempDir()
	run(t, "go", "-C", root, "run", "./dev/release", "archives", "-version", "v1.2.3", "-o", folder,
		"-platform", runtime.GOOS+"/"+runtime.GOARCH)
	run(t, "sh", "-c", `cd "$1" && sha256sum --check --strict --quiet SHA256SUMS`, "sh", folder)
	unpacked := t.TempDir()
	archive := filepath.Join(folder, "mirador_v1.2.3_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz")
	run(t, "tar", "-xzf", archive, "-C", unpacked)

	for _, program := range []string{"mirador", "kubectl-mirador"} {
		if said := run(t, filepath.Join(unpacked, program), "version"); !strings.HasPrefix(said, "version:   v1.2.3\n") {
			t.Errorf("%s version printed %q", program, said)
		}
	}
	if said := run(t, unpacked+"/kubectl-mirador", "get", "--help"); !strings.Contains(said, "\n  kubectl mirador get ") {
		t.Errorf("the help of the plugin is that of another program:\n%s", said)
	}
	for _, file := range []string{"LICENSE", "README.md", "THIRD_PARTY_LICENSES", "mirador.cdx.json",
		"kubectl_complete-mirador", "completion/bash/mirador", "completion/zsh/_mirador", "completion/fish/mirador.fish",
		"completion/powershell/mirador.ps1", "man/man1/mirador.1", "man/man1/mirador-serve.1",
		"man/man1/mirador-clusters-join.1"} {
		if info, err := os.Stat(filepath.Join(unpacked, file)); err != nil || info.Size() == 0 {
			t.Errorf("the archive has no %s (%v)", file, err)
		}
	}
	run(t, "bash", "-n", filepath.Join(unpacked, "completion/bash/mirador"))
	manifest, err := os.ReadFile(filepath.Join(folder, "mirador.yaml"))
	if err != nil || !strings.Contains(string(manifest), "/v1.2.3/"+filepath.Base(archive)+"\n") {
		t.Errorf("the manifest for krew does not name the archive (%v):\n%s", err, manifest)
	}
}
