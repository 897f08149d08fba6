package registry

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// open returns a registry in its own folder.
func open(t *testing.T) *Registry {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", shortTempDir(t))
	r, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func claim(t *testing.T, r *Registry, e Entry) *Claim {
	t.Helper()
	c, err := r.Claim(e)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClaimedNameIsListedUntilItIsReleased(t *testing.T) {
	r := open(t)
	b := claim(t, r, Entry{Name: "b", PID: 2, Started: time.Now()})
	a := claim(t, r, Entry{Name: "a", PID: 1})
	all, err := r.List()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Name != "a" || all[1].Name != "b" || all[1].PID != 2 {
		t.Errorf("the list is %+v", all)
	}
	a.Release()
	if _, err := r.Get("a"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a released name: %v", err)
	}
	b.Release()
	if _, err := os.Stat(r.dir); !os.IsNotExist(err) {
		t.Errorf("the folder outlives the last cluster (%v)", err)
	}
}

func TestNameIsClaimedOnce(t *testing.T) {
	r := open(t)
	c := claim(t, r, Entry{Name: "dev"})
	defer c.Release()
	if _, err := r.Claim(Entry{Name: "dev"}); !errors.Is(err, ErrRunning) ||
		!strings.Contains(err.Error(), "devcluster down dev") {
		t.Errorf("a second claim: %v", err)
	}
}

func TestUpdateIsSeenByOthers(t *testing.T) {
	r := open(t)
	c := claim(t, r, Entry{Name: "dev"})
	defer c.Release()
	if err := c.Update(Entry{Name: "dev", Server: "https://127.0.0.1:1", Ready: true}); err != nil {
		t.Fatal(err)
	}
	e, err := r.Get("dev")
	if err != nil || e.Server != "https://127.0.0.1:1" || !e.Ready {
		t.Errorf("got %+v, %v", e, err)
	}
}

// abandon leaves the registry as after a kill -9: the lock is free and everything else is still there.
func abandon(t *testing.T, c *Claim) {
	t.Helper()
	if err := c.file.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestWhatAKilledSupervisorLeftIsRemovedByTheNextCall(t *testing.T) {
	r := open(t)
	temporary, kept := filepath.Join(t.TempDir(), "temporary"), filepath.Join(t.TempDir(), "kept")
	for _, dir := range []string{temporary, kept} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	abandon(t, claim(t, r, Entry{Name: "a", Data: temporary, Temporary: true}))
	abandon(t, claim(t, r, Entry{Name: "b", Data: kept}))
	if err := os.WriteFile(r.ControlSocket("a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := r.List(); err != nil || len(all) != 0 {
		t.Errorf("the list is %+v, %v", all, err)
	}
	if _, err := os.Stat(temporary); !os.IsNotExist(err) {
		t.Errorf("the temporary data is still there (%v)", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("data that must be kept: %v", err)
	}
	if _, err := os.Stat(r.dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there (%v)", err)
	}
}

func TestKilledSupervisorsNameCanBeClaimedAgain(t *testing.T) {
	r := open(t)
	temporary := filepath.Join(t.TempDir(), "temporary")
	if err := os.Mkdir(temporary, 0o700); err != nil {
		t.Fatal(err)
	}
	abandon(t, claim(t, r, Entry{Name: "dev", Data: temporary, Temporary: true}))
	c := claim(t, r, Entry{Name: "dev", PID: 7})
	defer c.Release()
	if e, err := r.Get("dev"); err != nil || e.PID != 7 {
		t.Errorf("got %+v, %v", e, err)
	}
	if _, err := os.Stat(temporary); !os.IsNotExist(err) {
		t.Errorf("the predecessor's data is still there (%v)", err)
	}
}

func TestNamesAreDNSLabels(t *testing.T) {
	for name, good := range map[string]bool{
		"dev": true, "a": true, "a-1": true, strings.Repeat("a", 63): true,
		"": false, "-a": false, "a-": false, "A": false, "a.b": false, "a/b": false, "a b": false,
		strings.Repeat("a", 64): false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
	}
}

func TestFolderThatOthersCanEnterIsRefused(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	if err := os.Mkdir(filepath.Join(dir, "mirador-devcluster"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("got %v", err)
	}
}

func TestFolderThatIsALinkIsRefused(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "mirador-devcluster")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(); err == nil || !strings.Contains(err.Error(), "not a folder of yours") {
		t.Errorf("got %v", err)
	}
}

// shortTempDir returns a temporary folder whose path leaves room for sockets.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "dc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
