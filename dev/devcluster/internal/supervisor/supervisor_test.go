package supervisor

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/part"
)

func TestLastLinesBeginWithTheReason(t *testing.T) {
	for name, test := range map[string]struct{ log, want string }{
		"panic": {"chatter\npanic: boom\n\ngoroutine 1 [running]:\nmain.main()\n\tx.go:1\nexit\nlater\n",
			"panic: boom|goroutine 1 [running]:|main.main()|x.go:1|exit"},
		"klog": {"I1115 a\nE1115 10:00:00 run.go:72] \"command failed\" err=\"failed to listen\"\n",
			"E1115 10:00:00 run.go:72] \"command failed\" err=\"failed to listen\""},
		"no reason": {"1\n2\n3\n4\n5\n6\n", "2|3|4|5|6"},
		"empty":     {"", ""},
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(test.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(lastLines(path), "|"); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	if got := lastLines(filepath.Join(t.TempDir(), "absent")); len(got) > 0 {
		t.Errorf("an absent log has lines %q", got)
	}
}

func TestPreferredPortIsKeptIfItIsFree(t *testing.T) {
	free, err := freePort(0)
	if err != nil {
		t.Fatal(err)
	}
	if free < firstPort || free >= lastPort {
		t.Errorf("port %d is out of the range", free)
	}
	if again, err := freePort(free); err != nil || again != free {
		t.Errorf("got port %d, %v, want %d", again, err, free)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	if other, err := freePort(taken); err != nil || other == taken {
		t.Errorf("got port %d, %v, though that one is taken", other, err)
	}
}

func TestDataFolderIsOpenedOnceAndRemembersItsState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d, st, lock, err := openDataDir(path)
	if err != nil || st.Port != 0 {
		t.Fatalf("a new folder: %+v, %v", st, err)
	}
	if err := d.save(state{Port: 23456}); err != nil {
		t.Fatal(err)
	}
	var environment *EnvironmentError
	if _, _, _, err := openDataDir(path); !errors.As(err, &environment) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a folder in use: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	_, st, lock, err = openDataDir(path)
	if err != nil || st.Port != 23456 {
		t.Fatalf("a resumed folder: %+v, %v", st, err)
	}
	lock.Close()
}

func TestUnusableDataFolderIsAnEnvironmentError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := t.TempDir()
	if err := os.WriteFile(filepath.Join(damaged, stateFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below"), filepath.Dir(file), damaged} {
		var environment *EnvironmentError
		if _, _, _, err := openDataDir(path); !errors.As(err, &environment) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestNodesHaveDistinctAddresses(t *testing.T) {
	ips, ranges := map[string]bool{}, map[string]bool{}
	for i := range MaxNodes {
		n := node(i)
		ips[n.Status.Addresses[0].Address] = true
		ranges[n.Spec.PodCIDR] = true
		if r := podRange(i); r != r.Masked() || !strings.HasPrefix(r.String(), "10.") {
			t.Fatalf("node %d has the pod range %s", i, r)
		}
	}
	if len(ips) != MaxNodes || len(ranges) != MaxNodes {
		t.Errorf("%d addresses and %d ranges for %d nodes", len(ips), len(ranges), MaxNodes)
	}
}

func TestFaultsAreCheckedBeforeTheyAreSent(t *testing.T) {
	for _, name := range part.Names() {
		if err := CheckFault(Kill, name); err != nil {
			t.Errorf("kill %s: %v", name, err)
		}
	}
	for _, action := range []Action{Compact, Rotate} {
		if err := CheckFault(action, ""); err != nil {
			t.Errorf("%s: %v", action, err)
		}
	}
	for _, bad := range []faultRequest{{"tickle", part.Etcd}, {Pause, "kubelet"}, {Pause, ""}, {Compact, part.Etcd},
		{Rotate, part.APIServer}} {
		if CheckFault(bad.Action, bad.Part) == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}
