package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// stateArgs returns the arguments of a daemon whose clusters all join at run time.
func stateArgs(t *testing.T, listen string) (args []string, state string) {
	t.Helper()
	state = filepath.Join(t.TempDir(), "state.json")
	return []string{"--listen", listen, "--folder", t.TempDir(), "--state", state}, state
}

// synced returns how many resources of its clusters a daemon has mirrored.
func synced(r server.Report) (n int) {
	for _, c := range r.Clusters {
		for _, res := range c.Resources {
			if res.Synced {
				n++
			}
		}
	}
	return n
}

func TestDaemonKilledDuringTheSyncRestartsWithAllClusters(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	real, _ := clients(t, cluster)
	config := kubeconfig(t, cluster, "killed-while-syncing")
	args, state := stateArgs(t, "127.0.0.1:0")
	client := plain(t)

	d := begin(t, client, args...)
	for _, name := range []string{"eu", "us"} {
		if code, err := d.join(name, config); err != nil || code != http.StatusCreated {
			t.Fatalf("join %s: %d, %v", name, code, err)
		}
	}
	d.kill(t) // a join that was answered is on the disk
	whole, err := os.ReadFile(state)
	check(t, err)

	for _, progress := range []int{0, 1, 20, 60} {
		d = begin(t, client, args...)
		if got := d.members(t); !slices.Equal(got, []string{"eu", "us"}) {
			t.Fatalf("after a kill there are %q", got)
		}
		var had int
		until(t, func() string {
			if had = synced(d.report(t)); had < progress {
				return fmt.Sprintf("only %d resources are mirrored", had)
			}
			return ""
		})
		d.kill(t)
		t.Logf("killed with %d resources mirrored", had)
		if now, err := os.ReadFile(state); err != nil || !bytes.Equal(now, whole) {
			t.Fatalf("the state file has changed: %v", err)
		}
	}
	d = begin(t, client, args...)
	d.ready(t, "eu", "us")
	d.equals(t, "eu", real, cluster.Config().Host)
	d.equals(t, "us", real, cluster.Config().Host)
}

func TestUnfinishedStateFileDoesNotPreventARestart(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	config := kubeconfig(t, cluster, "half-written")
	args, state := stateArgs(t, "127.0.0.1:0")
	client := plain(t)
	d := begin(t, client, args...)
	if code, err := d.join("eu", config); err != nil || code != http.StatusCreated {
		t.Fatalf("join: %d, %v", code, err)
	}
	d.stop(t)
	whole, err := os.ReadFile(state)
	check(t, err)

	// A kill during a write leaves an unfinished file next to the state file. It contains credentials, perhaps of a
	// cluster that has left since.
	half := filepath.Join(filepath.Dir(state), "."+filepath.Base(state)+"-123456")
	check(t, os.WriteFile(half, whole[:len(whole)/2], 0o600))
	d = begin(t, client, args...)
	d.ready(t, "eu")
	if code, err := d.join("us", config); err != nil || code != http.StatusCreated {
		t.Fatalf("join: %d, %v", code, err)
	}
	d.kill(t)
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("the unfinished file still exists: %v", err)
	}

	// A state file that cannot be used is not changed.
	whole, err = os.ReadFile(state)
	check(t, err)
	var content struct{ Clusters []struct{ Kubeconfig string } }
	check(t, json.Unmarshal(whole, &content))
	for name, text := range map[string]string{
		"truncated":     string(whole[:len(whole)*2/3]),
		"empty":         "",
		"zeros":         strings.Repeat("\x00", len(whole)),
		"garbage":       "\x7fELF\x02\x01\x01" + string(whole[100:200]),
		"of a stranger": `["` + content.Clusters[0].Kubeconfig[:10] + `"]`,
	} {
		check(t, os.WriteFile(state, []byte(text), 0o600))
		code, said := refused(t, args...)
		if code != exitUsage || !strings.Contains(said, state) || !strings.Contains(said, "move it away") {
			t.Errorf("%s: exit code %d, and %s", name, code, said)
		}
		secrets(t, name, said, config)
		if now, err := os.ReadFile(state); err != nil || string(now) != text {
			t.Errorf("%s: the file was changed: %v", name, err)
		}
	}
	check(t, os.WriteFile(state, whole, 0o600))
	d = begin(t, client, args...)
	if got := d.members(t); !slices.Equal(got, []string{"eu", "us"}) {
		t.Errorf("the repaired file has %q", got)
	}
}

// secrets fails if a text contains a part of a kubeconfig's key or token.
func secrets(t *testing.T, where, text string, kubeconfig []byte) {
	t.Helper()
	known := 0
	for line := range strings.Lines(string(kubeconfig)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || name != "client-key-data" && name != "token" || len(value) < 40 {
			continue
		}
		known++
		if strings.Contains(text, value[20:40]) {
			t.Errorf("%s shows a part of %s", where, name)
		}
	}
	if known == 0 {
		t.Error("the kubeconfig has no secret, so the test proves nothing")
	}
}
