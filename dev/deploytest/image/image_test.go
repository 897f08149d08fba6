// Package image tests the image that `make image` builds.
package image

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const root = "../../.."

// patience is how long a test waits for something that should take seconds.
const patience = time.Minute

// image is the image, as a container of buildah.
type image struct {
	container string
	mounted   string // the folder of its root file system
	files     []string
	version   string
}

// built builds the image for this machine, as a user would.
func built(t *testing.T) *image {
	t.Helper()
	run(t, "make", "--no-print-directory", "-C", root, "image", "ARCHS="+runtime.GOARCH)
	archive, err := filepath.Abs(root + "/bin/image/mirador.tar")
	if err != nil {
		t.Fatal(err)
	}
	storage := t.TempDir()
	buildah := func(args ...string) string {
		t.Helper()
		return run(t, "buildah", append([]string{"--storage-driver", "vfs", "--root", storage + "/storage",
			"--runroot", storage + "/run"}, args...)...)
	}
	i := &image{container: buildah("from", "oci-archive:"+archive)}
	i.mounted = buildah("mount", i.container)
	i.files = filesIn(t, i.mounted) // buildah run adds some
	version, err := os.ReadFile(root + "/bin/image/" + runtime.GOARCH + "/version")
	if err != nil {
		t.Fatal(err)
	}
	i.version = strings.TrimSpace(string(version))

	t.Run("its labels and its user", func(t *testing.T) {
		var about struct {
			OCIv1 struct {
				Architecture string
				Config       struct {
					User       string
					Entrypoint []string
					Labels     map[string]string
				}
			}
		}
		if err := json.Unmarshal([]byte(buildah("inspect", i.container)), &about); err != nil {
			t.Fatal(err)
		}
		got := about.OCIv1
		if got.Architecture != runtime.GOARCH || got.Config.User != "65532:65532" || len(got.Config.Entrypoint) != 1 {
			t.Errorf("the image is %+v", got)
		}
		for label, want := range map[string]string{"version": i.version, "licenses": "Apache-2.0", "title": "mirador",
			"source": "https://github.com/mirador-k8s/mirador"} {
			if got := got.Config.Labels["org.opencontainers.image."+label]; got != want {
				t.Errorf("the label %s is %q, want %q", label, got, want)
			}
		}
	})
	t.Run("buildah runs it", func(t *testing.T) {
		said := buildah("run", "--isolation", "chroot", i.container, "--", "/mirador", "version")
		if !strings.HasPrefix(said, "version:   "+i.version+"\n") {
			t.Errorf("mirador version printed %q, want the version %s", said, i.version)
		}
	})
	return i
}

// run runs a command and returns what it prints, without the last newline.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, &out, &problems)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// command returns a command in the image with a root file system that nobody can write to, as the image's user.
// Only the folder data can be written to.
func (i *image) command(t *testing.T, data string, args ...string) *exec.Cmd {
	t.Helper()
	const script = `set -e; mount --bind "$1" "$1"; mount --bind "$2" "$1/data"; mount -o remount,bind,ro "$1"
		root=$1; shift 2; exec chroot --userspec=65532:65532 --groups=65532 "$root" "$@"`
	cmd := exec.Command("unshare", append([]string{"--mount", "sh", "-c", script, "sh", i.mounted, data}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func TestImage(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts the root file system of the image: run it as root, or make test in a container")
	}
	i := built(t)
	t.Run("it has nothing but what it needs", i.hasOnlyWhatItNeeds)
	t.Run("the program is static", i.isStatic)
	t.Run("its bill of materials is about its program", i.billFits)
	t.Run("it serves without a right to write", i.serves)
}

// filesIn returns the paths of all files in a folder, from the folder on.
func filesIn(t *testing.T, folder string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, folder))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (i *image) hasOnlyWhatItNeeds(t *testing.T) {
	want := []string{"/etc/ssl/certs/ca-certificates.crt", "/mirador", "/usr/share/doc/mirador/LICENSE",
		"/usr/share/doc/mirador/THIRD_PARTY_LICENSES", "/usr/share/doc/mirador/mirador.cdx.json"}
	if !slices.Equal(i.files, want) {
		t.Errorf("the image has %q, want %q", i.files, want)
	}
}

func (i *image) isStatic(t *testing.T) {
	if said := run(t, "go", "version", "-m", i.mounted+"/mirador"); !strings.Contains(said, "CGO_ENABLED=0") {
		t.Errorf("the program was built with\n%s", said)
	}
}

func (i *image) billFits(t *testing.T) {
	content, err := os.ReadFile(i.mounted + "/mirador")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(i.mounted + "/usr/share/doc/mirador/mirador.cdx.json")
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		BOMFormat, SpecVersion string
		Metadata               struct {
			Component struct {
				Version string
				Hashes  []struct{ Content string }
			}
		}
		Components []struct{ PURL string }
	}
	if err := json.Unmarshal(text, &bill); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	main := bill.Metadata.Component
	if bill.BOMFormat != "CycloneDX" || main.Version != i.version || len(main.Hashes) != 1 ||
		main.Hashes[0].Content != hex.EncodeToString(sum[:]) {
		t.Errorf("the bill is about %+v, want version %s and the sum %x", main, i.version, sum)
	}
	for _, want := range []string{"pkg:golang/k8s.io/client-go@v", "pkg:golang/github.com/cockroachdb/pebble/v2@v",
		"pkg:golang/stdlib@1."} {
		found := false
		for _, c := range bill.Components {
			found = found || strings.HasPrefix(c.PURL, want)
		}
		if !found {
			t.Errorf("the bill has no %s…", want)
		}
	}
}

// serves starts the daemon with a folder for its data, and asks whether it is alive.
func (i *image) serves(t *testing.T) {
	data := t.TempDir()
	if err := os.Chown(data, 65532, 65532); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(data+"/clusters", 0o755); err != nil {
		t.Fatal(err)
	}
	refused, err := i.command(t, data, "/mirador", "serve", "--folder", "/data/clusters", "--listen", "127.0.0.1:0",
		"--audit-log-path", "/audit.log").CombinedOutput()
	if err == nil || !strings.Contains(string(refused), "read-only file system") {
		t.Errorf("the root file system can be written to: %v\n%s", err, refused)
	}
	cmd := i.command(t, data, "/mirador", "serve", "--folder", "/data/clusters", "--listen", "127.0.0.1:0",
		"--data", "/data/mirror")
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the daemon ended with %v:\n%s", err, &problems)
		}
	}()
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	url := strings.TrimSuffix(strings.TrimSpace(strings.TrimPrefix(first, "the page:")), "/")
	if err != nil || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("the daemon printed %q (%v):\n%s", first, err, &problems)
	}
	go io.Copy(io.Discard, lines)
	if err := owners(cmd.Process.Pid); err != nil {
		t.Error(err)
	}
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	for _, path := range []string{"/livez", "/readyz"} {
		resp, err := client.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || string(body) != "ok" {
			t.Errorf("%s is %d %q", path, resp.StatusCode, body)
		}
	}
}

// owners returns an error if a process is not the user of the image, in all four of its identities.
func owners(pid int) error {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err
	}
	for _, want := range []string{"Uid:\t65532\t65532\t65532\t65532\n", "Gid:\t65532\t65532\t65532\t65532\n",
		"CapEff:\t0000000000000000\n"} {
		if !strings.Contains(string(status), want) {
			return fmt.Errorf("the process has no %q:\n%s", want, status)
		}
	}
	return nil
}
