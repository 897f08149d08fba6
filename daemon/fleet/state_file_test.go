package fleet_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

func TestClustersJoinedAtRunTimeSurviveARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	f := newFleet(t, fleet.Options{StateFile: path})
	for _, name := range []string{"b", "a", "c"} {
		if err := f.JoinKubeconfig(name, []byte(kubeconfig("", ", token: abcdefgh", "eu")), ""); err != nil {
			t.Fatal(err)
		}
	}
	configs, err := fleet.FromKubeconfig(writeFile(t, filepath.Join(t.TempDir(), "config"),
		kubeconfig("", ", token: abcdefgh", "own")))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Join("own", configs["own"], fleet.Origin{Kind: fleet.FromFile}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	f = newFleet(t, fleet.Options{StateFile: path})
	if got := names(f.Clusters()); got != "a b c" {
		t.Errorf("after a restart: %s", got)
	}
	if got := f.Clusters()[0].Origin(); got.Kind != fleet.FromJoin || got.Detail != "https://192.0.2.1:6443/eu" {
		t.Errorf("Origin = %+v", got)
	}
	if err := f.Leave(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if got := names(newFleet(t, fleet.Options{StateFile: path}).Clusters()); got != "a c" {
		t.Errorf("after one has left: %s", got)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("other files are left behind: %v, %v", left, err)
	}
}

func TestUnreadableStateFileIsAnErrorAndStaysUnchanged(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good")
	f := newFleet(t, fleet.Options{StateFile: good})
	if err := f.JoinKubeconfig("eu", []byte(kubeconfig("", ", token: hunter2hunter2", "eu")), ""); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	whole := string(body)
	for name, text := range map[string]string{
		"empty":           "",
		"cut short":       whole[:len(whole)-10],
		"more behind it":  whole + "{}",
		"other type":      `{"version": 1, "clusters": "hunter2hunter2"}`,
		"later version":   strings.Replace(whole, `"version": 1`, `"version": 2`, 1),
		"twice":           strings.Replace(whole, `"clusters": [`, `"clusters": [{"name": "eu"},`, 1),
		"a plugin in it":  strings.Replace(whole, "token: hunter2hunter2", "exec: {apiVersion: v1, command: touch}", 1),
		"no such context": strings.Replace(whole, "current-context: eu", "current-context: us", 1),
		"bad name":        strings.Replace(whole, `"name": "eu"`, `"name": "../eu"`, 1),
	} {
		path := writeFile(t, filepath.Join(t.TempDir(), "state"), text)
		_, err := fleet.New(fleet.Options{StateFile: path, Logger: quiet()})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		says(t, err, path, "move it away")
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error quotes a token: %v", name, err)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != text {
			t.Errorf("%s: the file was changed", name)
		}
	}
	_, err = fleet.New(fleet.Options{StateFile: t.TempDir(), Logger: quiet()})
	says(t, err, "state file")
	_, err = fleet.New(fleet.Options{StateFile: filepath.Join(t.TempDir(), "missing", "state"), Logger: quiet()})
	says(t, err, "there is no folder", "missing; make it")
}

func TestJoinAndLeaveFailIfTheStateFileCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, fleet.Options{StateFile: filepath.Join(dir, "file")})
	config := []byte(kubeconfig("", ", token: abcdefgh", "eu"))
	if err := f.JoinKubeconfig("eu", config, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	says(t, f.JoinKubeconfig("us", config, ""), "write the state file")
	says(t, f.Leave(t.Context(), "eu"), "it stays", "write the state file")
	if got := names(f.Clusters()); got != "eu" {
		t.Errorf("Clusters = %s", got)
	}
}
