package main

import (
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/informertest"
)

// memoryCluster starts a cluster in memory with a pod, and returns a kubeconfig of it.
func memoryCluster(t *testing.T) string {
	t.Helper()
	cluster := informertest.NewServer()
	for _, of := range []metav1.TypeMeta{{Kind: "Namespace"}, {Kind: "Pod"}} {
		meta := map[string]any{"name": "kube-system"}
		if of.Kind == "Pod" {
			meta["namespace"] = "kube-system"
		}
		_, err := cluster.Create(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": of.Kind,
			"metadata": meta}})
		check(t, err)
	}
	cfg, stop := informertest.Serve(cluster)
	t.Cleanup(stop)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	check(t, os.WriteFile(path, []byte("apiVersion: v1\nkind: Config\ncurrent-context: eu\nclusters: [{name: eu, cluster: "+
		"{server: '"+cfg.Host+"'}}]\nusers: [{name: eu, user: {}}]\n"+
		"contexts: [{name: eu, context: {cluster: eu, user: eu}}]\n"), 0o600))
	return path
}

// diskIs waits until the report has a state of the data folder.
func (d *daemon) diskIs(t *testing.T, what string, is func(*server.Disk) bool) {
	t.Helper()
	until(t, func() string {
		r := d.report(t)
		if r.Disk == nil || !is(r.Disk) {
			return what + " is not reported; the daemon said:\n" + d.said(t)
		}
		return ""
	})
}

// servesPods checks that the daemon mirrors the cluster and serves it.
func (d *daemon) servesPods(t *testing.T) {
	t.Helper()
	d.ready(t, "eu")
	if code, b, err := d.get("/clusters/eu/api/v1/pods"); err != nil || code != http.StatusOK ||
		!strings.Contains(string(b), "kube-system") {
		t.Errorf("pods: %d, %v, %s", code, err, b)
	}
}

func TestServeRefusesADataFolderThatItMustNotUse(t *testing.T) {
	dir, keyFile := savedData(t)
	base := filepath.Dir(dir)
	write := func(name, text string) string {
		path := filepath.Join(base, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		check(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	short := write("short", "c2hvcnQ=\n")
	other := write("other", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n")
	format, err := os.ReadFile(filepath.Join(dir, "format"))
	check(t, err)
	write("newer/format", strings.Replace(string(format), "data 1", "data 99", 1))
	write("foreign/format", "something else\n")
	write("incomplete/db/000001.log", "something")
	for _, c := range []struct{ args, want string }{
		{"--data-key " + keyFile, "--data-key is for a data folder, and there is none; name it with --data"},
		{"--data-max-bytes 1000000000", "--data-max-bytes is for a data folder"},
		{"--data " + base + "/no/data", "there is no folder " + base + "/no; make it, or name another folder"},
		{"--data " + keyFile, "it is a file, not a folder; name another folder"},
		{"--data " + keyFile + "/data", "there is no folder " + keyFile + "; make it, or name another folder"},
		{"--data " + dir + " --data-history 0s", "--data-history is 0s; give a time such as 24h"},
		{"--data " + dir + " --data-max-bytes 5", "a limit of 5 bytes is too small; give at least "},
		{"--data " + dir + " --data-key " + short, "is not 32 bytes in base64; make one with "},
		{"--data " + dir + " --data-key " + base + "/none", "no such file or directory; --data-key names it"},
		{"--data " + dir + " --data-key " + other, "secrets.v1: it was sealed with another key; give that key, or drop the " +
			"cluster, with mirador data drop"},
		{"--data " + base + "/newer", "it has the format 99 with packed objects "},
		{"--data " + base + "/newer", "start the mirador that wrote it, or give another folder"},
		{"--data " + base + "/foreign", "is not one that mirador has written; give another folder"},
		{"--data " + base + "/incomplete", "it has data and no file " + base + "/incomplete/format; restore that file"},
	} {
		code, said := saidBy(t, append([]string{"serve", "--folder", t.TempDir()}, strings.Fields(c.args)...)...)
		if code != 2 || !strings.Contains(said, c.want) || strings.Count(said, "\n") != 1 {
			t.Errorf("mirador serve %s: exit code %d, and %swant %s", c.args, code, said, c.want)
		}
	}
	mustSay(t, "data", "verify", dir, "--data-key", keyFile) // nothing was dropped
}

func TestADataFolderInUseIsRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	d := begin(t, plain(t), "--listen", "127.0.0.1:0", "--folder", t.TempDir(), "--data", dir)
	for _, command := range []string{"sizes", "verify", "compact"} {
		code, said := saidBy(t, "data", command, dir)
		if code != 1 || !strings.Contains(said, "is in use, probably by mirador serve; stop that first") {
			t.Errorf("data %s: exit code %d, %s", command, code, said)
		}
	}
	code, said := refused(t, "--listen", "127.0.0.1:0", "--folder", t.TempDir(), "--data", dir)
	if code != 2 || !strings.Contains(said, "it is in use by another process; stop that process, or give this one a "+
		"folder of its own") {
		t.Errorf("a second daemon: exit code %d, %s", code, said)
	}
	d.stop(t)
	mustSay(t, "data", "sizes", dir)
}

func TestOthersCannotReadADataFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	check(t, os.Mkdir(dir, 0o777))
	check(t, os.Chmod(dir, 0o777))
	d := begin(t, plain(t), "--listen", "127.0.0.1:0", "--kubeconfig", memoryCluster(t), "--data", dir)
	d.servesPods(t)
	d.diskIs(t, "a data folder that works", func(r *server.Disk) bool { return r.Error == "" && r.Bytes > 0 })
	d.stop(t)
	files := 0
	check(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		files++
		return err
	}))
	if files < 5 {
		t.Errorf("the data folder has %d files", files)
	}
}

func TestServeRefusesADataFolderWithoutTheRightToIt(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	check(t, os.Chmod(filepath.Dir(base), 0o755))
	binary, err := os.ReadFile(program(t))
	check(t, err)
	copied := filepath.Join(base, "mirador")
	check(t, os.WriteFile(copied, binary, 0o755))
	check(t, os.Mkdir(filepath.Join(base, "clusters"), 0o755))
	dir := filepath.Join(base, "data")
	check(t, os.Mkdir(dir, 0o700))
	cmd := exec.CommandContext(t.Context(), copied, "serve", "--listen", "127.0.0.1:0", "--folder", "clusters", "--data",
		dir)
	cmd.Dir = base
	if os.Getuid() == 0 { // who may use every folder
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	} else {
		check(t, os.Chmod(dir, 0))
		defer os.Chmod(dir, 0o700) // so that it can be removed
	}
	said, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(said), "permission denied") ||
		!strings.Contains(string(said), dir) || strings.Count(string(said), "\n") != 1 {
		t.Errorf("%v: %s", err, said)
	}
}

func TestServeGoesOnWithoutADamagedDataFolder(t *testing.T) {
	t.Parallel()
	dir, _ := savedData(t)
	path := flip(t, dir, ".log")
	d := begin(t, plain(t), "--listen", "127.0.0.1:0", "--kubeconfig", memoryCluster(t), "--data", dir)
	d.servesPods(t)
	d.diskIs(t, "the damage", func(r *server.Disk) bool {
		return strings.Contains(r.Error, path+" is damaged") && strings.Contains(r.Error, "mirador data verify") &&
			!r.Since.IsZero()
	})
	if _, b, err := d.get("/metrics"); err != nil || !strings.Contains(string(b), "\nmirador_disk_failed 1\n") {
		t.Errorf("the metrics do not say that the data folder has failed: %v", err)
	}
}

func TestServeGoesOnWithAFullFileSystem(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 { // only root can mount a file system
		runAsRootOfItsOwn(t)
		return
	}
	mount := t.TempDir()
	check(t, syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=16m"))
	t.Cleanup(func() { check(t, syscall.Unmount(mount, 0)) })
	d := begin(t, plain(t), "--listen", "127.0.0.1:0", "--kubeconfig", memoryCluster(t), "--data",
		filepath.Join(mount, "data"))
	d.servesPods(t)
	d.diskIs(t, "the full file system", func(r *server.Disk) bool {
		return strings.Contains(r.Error, "bytes left") && strings.Contains(r.Error, "free some space")
	})
	check(t, syscall.Mount("", mount, "", syscall.MS_REMOUNT, "size=1g"))
	d.diskIs(t, "that it works again", func(r *server.Disk) bool { return r.Error == "" })
	d.stop(t)
}

// runAsRootOfItsOwn runs the test again in a user namespace and a mount namespace of its own, where the user is root.
func runAsRootOfItsOwn(t *testing.T) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as root of a namespace: %v\n%s", err, out)
	}
}
