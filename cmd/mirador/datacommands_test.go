package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// savedData makes a data folder with the clusters eu and us, each with 300 pods and a sealed secret, and returns it and
// the file of its key.
func savedData(t *testing.T) (dir, keyFile string) {
	t.Helper()
	base := t.TempDir()
	dir, keyFile = filepath.Join(base, "data"), filepath.Join(base, "key")
	key := bytes.Repeat([]byte{7}, 32)
	check(t, os.WriteFile(keyFile, []byte(base64.StdEncoding.EncodeToString(key)+"\n"), 0o600))
	d, err := disk.Open(dir, disk.Options{Key: key, Logger: slog.New(slog.DiscardHandler)})
	check(t, err)
	for _, cluster := range []string{"eu", "us"} {
		pods := disk.Resource{Cluster: cluster, Version: "v1", Resource: "pods"}
		secrets := disk.Resource{Cluster: cluster, Version: "v1", Resource: "secrets"}
		b := d.NewBatch()
		b.SetCluster(cluster, "uid-"+cluster)
		b.SetDocument(cluster, "discovery", []byte("{}"))
		check(t, b.Open(pods, disk.ResourceOptions{History: true}))
		check(t, b.Open(secrets, disk.ResourceOptions{Sealed: true}))
		for i := range 300 {
			b.Put(pods, savedState(fmt.Sprint("web/pod-", i), i+1))
		}
		b.Put(secrets, savedState("web/password", 301))
		b.Reach(pods, "301", time.Now())
		b.Reach(secrets, "301", time.Now())
		check(t, b.Commit())
	}
	check(t, d.Close())
	return dir, keyFile
}

func savedState(key string, version int) disk.State {
	v, uid := fmt.Sprint(version), fmt.Sprint("uid-", version)
	encoded := fmt.Appendf(nil, `{"metadata":{"name":%q,"uid":%q,"resourceVersion":%q},"spec":{"text":%q}}`, key, uid, v,
		strings.Repeat(fmt.Sprintf("%x,", version*version*7919), 40))
	return disk.State{Key: object.Key(key), Version: object.Version(v), UID: uid, Size: len(encoded), Time: time.Now(),
		Object: store.PackWhole(encoded, store.PackedContext(key, uid, v))}
}

// mustSay runs a command that succeeds.
func mustSay(t *testing.T, args ...string) string {
	t.Helper()
	code, said := saidBy(t, args...)
	if code != 0 {
		t.Fatalf("mirador %q: exit code %d, %s", args, code, said)
	}
	return said
}

// flip changes a byte in the middle of the largest file of a data folder with that extension.
func flip(t *testing.T, dir, extension string) (path string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "db", "*"+extension))
	check(t, err)
	var largest int64
	for _, name := range files {
		if info, err := os.Stat(name); err == nil && info.Size() > largest {
			path, largest = name, info.Size()
		}
	}
	if path == "" {
		t.Fatalf("%s has no file that ends in %s", dir, extension)
	}
	b, err := os.ReadFile(path)
	check(t, err)
	b[len(b)/2] ^= 1
	check(t, os.WriteFile(path, b, 0o600))
	return path
}

func TestDataSizesAreByClusterAndResource(t *testing.T) {
	dir, _ := savedData(t)
	said := mustSay(t, "data", "sizes", dir)
	for _, want := range []string{"CLUSTER", "eu        pods       300       300", "us        (all)      301",
		"(all)     (all)      602", "all files: "} {
		if !strings.Contains(said, want) {
			t.Errorf("there is no %q in\n%s", want, said)
		}
	}
	var sizes dataSizes
	check(t, json.Unmarshal([]byte(mustSay(t, "data", "sizes", dir, "-o", "json")), &sizes))
	if len(sizes.Clusters) != 2 || sizes.Total.Objects != 602 || sizes.Files == 0 || sizes.Total.State == 0 ||
		sizes.Clusters[0].Resources[0].Resource != "pods" || sizes.Clusters[0].Resources[0].Changes != 300 {
		t.Errorf("sizes: %+v", sizes)
	}
	if all := sizes.Total; all.State+all.History+all.Bases+all.Documents > sizes.Files {
		t.Errorf("the files have %d bytes, and the parts %+v", sizes.Files, all)
	}
}

func TestDataVerifyFindsAFlippedBit(t *testing.T) {
	dir, keyFile := savedData(t)
	mustSay(t, "data", "compact", dir) // so that everything is in tables
	if said := mustSay(t, "data", "verify", dir, "--data-key", keyFile); !strings.Contains(said, "is not damaged") {
		t.Errorf("verify says %s", said)
	}
	mustSay(t, "data", "verify", dir)
	path := flip(t, dir, ".sst")
	code, said := saidBy(t, "data", "verify", dir)
	if code != 1 || !strings.Contains(said, "the file "+path+" is damaged") ||
		!strings.Contains(said, "move the folder away") || strings.Contains(said, "stack") {
		t.Errorf("exit code %d, %s", code, said)
	}
}

func TestDataCommandsFindADamagedLog(t *testing.T) {
	dir, _ := savedData(t)
	path := flip(t, dir, ".log")
	for _, command := range []string{"verify", "sizes"} {
		code, said := saidBy(t, "data", command, dir)
		if code != 1 || !strings.Contains(said, path+" is damaged") || !strings.Contains(said, "move the folder away") {
			t.Errorf("%s: exit code %d, %s", command, code, said)
		}
	}
}

func TestDataDropRemovesACluster(t *testing.T) {
	dir, keyFile := savedData(t)
	code, said := saidBy(t, "data", "drop", dir, "eu")
	if code != 2 || !strings.Contains(said, "this would remove 2 resources of cluster eu") ||
		!strings.Contains(said, "add --yes") {
		t.Errorf("without --yes: exit code %d, %s", code, said)
	}
	if code, said = saidBy(t, "data", "drop", dir, "asia", "--yes"); code != 3 ||
		!strings.Contains(said, `has no cluster "asia"`) {
		t.Errorf("an unknown cluster: exit code %d, %s", code, said)
	}
	mustSay(t, "data", "drop", dir, "eu", "--yes")
	said = mustSay(t, "data", "sizes", dir)
	if strings.Contains(said, "eu ") || !strings.Contains(said, "us        pods       300") {
		t.Errorf("after the drop:\n%s", said)
	}
	mustSay(t, "data", "verify", dir, "--data-key", keyFile)
}

func TestDataCommandsRefuseOtherFolders(t *testing.T) {
	dir, keyFile := savedData(t)
	base := filepath.Dir(dir)
	empty := t.TempDir()
	other := filepath.Join(base, "other")
	check(t, os.WriteFile(other, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))), 0o600))
	for _, c := range []struct {
		code int
		args []string
		want string
	}{
		{3, []string{"sizes", filepath.Join(base, "none")}, "there is no folder "},
		{3, []string{"verify", keyFile}, "is a file; name the folder of mirador serve --data"},
		{3, []string{"compact", empty}, "is not a data folder; name the one of mirador serve --data"},
		{2, []string{"sizes"}, "takes 1 arguments, and got 0; see mirador data sizes --help"},
		{2, []string{"sizes", dir, "-o", "xml"}, `--output is json, or left out for a table, and not "xml"`},
		{2, []string{"drop", dir}, "takes 2 arguments, and got 1"},
		{2, []string{"verify", dir, "--data-key", filepath.Join(base, "none")}, "read the key of the data folder"},
		{1, []string{"verify", dir, "--data-key", other}, "it was sealed with another key; give that key"},
	} {
		code, said := saidBy(t, append([]string{"data"}, c.args...)...)
		if code != c.code || !strings.Contains(said, c.want) || !strings.HasPrefix(said, "mirador: ") {
			t.Errorf("mirador data %q: exit code %d, and %swant %d, %s", c.args, code, said, c.code, c.want)
		}
	}
	if names, err := os.ReadDir(empty); err != nil || len(names) > 0 {
		t.Errorf("a folder that was refused has %d files, %v", len(names), err)
	}
	for _, command := range []string{"sizes", "verify", "compact", "drop"} {
		if said := mustSay(t, "data", command, "--help"); !strings.Contains(said, "Examples:\n  mirador data "+command) {
			t.Errorf("data %s has no example:\n%s", command, said)
		}
	}
}

func TestDataProgressSaysHowMuchWasRead(t *testing.T) {
	p := showProgress(&bytes.Buffer{})
	defer p.end()
	p.update(1<<20, 4<<20)
	if got, want := p.text(), "read 1.0 MiB of 4.0 MiB"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.update(4<<20, 4<<20)
	if got, want := p.text(), "read all files, 4.0 MiB; decoding every object"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
