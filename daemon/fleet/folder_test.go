package fleet_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// watched runs a test with a folder that is followed. The fleet does not run, so no request is
// sent.
func watched(t *testing.T, test func(f *fleet.Fleet, dir string, l *logs)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := &logs{}
		f, err := fleet.New(fleet.Options{Logger: l.logger()})
		if err != nil {
			t.Fatal(err)
		}
		follower, err := f.FollowFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- follower.Run(ctx, time.Second) }()
		synctest.Wait()
		test(f, dir, l)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// pass waits until the folder has been checked twice.
func pass() {
	<-time.After(2500 * time.Millisecond)
	synctest.Wait()
}

func expect(t *testing.T, f *fleet.Fleet, when, want string) {
	t.Helper()
	if got := names(f.Clusters()); got != want {
		t.Errorf("%s: clusters %q, want %q", when, got, want)
	}
}

func TestFolderOfKubeconfigsIsFollowed(t *testing.T) {
	watched(t, func(f *fleet.Fleet, dir string, l *logs) {
		expect(t, f, "empty", "")
		eu := filepath.Join(dir, "Eu_west.yaml")
		text := kubeconfig("", ", token: abcdefgh", "one")
		writeFile(t, eu, text)
		writeFile(t, filepath.Join(dir, ".hidden"), text)
		writeFile(t, filepath.Join(dir, "us.conf"), kubeconfig("", ", token: abcdefgh", "a", "b"))
		if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
			t.Fatal(err)
		}
		pass()
		expect(t, f, "added", "eu-west us-a us-b")
		first, _ := f.Cluster("eu-west")
		if first.Origin() != (fleet.Origin{Kind: "folder", Detail: eu}) {
			t.Errorf("Origin = %+v", first.Origin())
		}
		a, _ := f.Cluster("us-a")
		b, _ := f.Cluster("us-b")

		writeFile(t, eu, strings.Replace(text, "abcdefgh", "ijklmnop", 1))
		writeFile(t, filepath.Join(dir, "us.conf"),
			strings.Replace(kubeconfig("", ", token: abcdefgh", "a", "b"), "6443/b", "6443/c", 1))
		pass()
		expect(t, f, "changed", "eu-west us-a us-b")
		if now, _ := f.Cluster("eu-west"); now != first || first.Health().State == fleet.Left {
			t.Error("a cluster joined again because of a new token")
		}
		if now, _ := f.Cluster("us-a"); now != a {
			t.Error("an unchanged context joined again")
		}
		if now, _ := f.Cluster("us-b"); now == b {
			t.Error("a context with another server did not join again")
		}
		if err := os.Rename(eu, filepath.Join(dir, "asia")); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "us.conf")); err != nil {
			t.Fatal(err)
		}
		pass()
		expect(t, f, "removed", "asia")
		if l.String() != "" {
			t.Errorf("an error was logged: %s", l)
		}
	})
}

func TestBrokenFileIsLoggedOnceAndKeepsItsClusters(t *testing.T) {
	watched(t, func(f *fleet.Fleet, dir string, l *logs) {
		path := filepath.Join(dir, "eu.yaml")
		text := kubeconfig("", ", token: hunter2hunter2", "one")
		writeFile(t, path, text)
		pass()
		c, _ := f.Cluster("eu")
		writeFile(t, path, text[:len(text)-30]+"\n\t{")
		pass()
		pass()
		if now, _ := f.Cluster("eu"); now != c {
			t.Error("the cluster of a broken file has left")
		}
		if n := strings.Count(l.String(), "\n"); n != 1 || !strings.Contains(l.String(), "eu.yaml") ||
			strings.Contains(l.String(), "hunter2") {
			t.Errorf("reported %d times: %s", n, l)
		}
		writeFile(t, path, text)
		pass()
		if now, _ := f.Cluster("eu"); now != c {
			t.Error("the cluster joined again although its file is the same as before")
		}
		if err := os.Rename(dir, dir+"-away"); err != nil {
			t.Fatal(err)
		}
		pass()
		expect(t, f, "without the folder", "eu")
		if n := strings.Count(l.String(), "\n"); n != 2 || !strings.Contains(l.String(), "stay as they are") {
			t.Errorf("reported %d times: %s", n, l)
		}
		if err := os.Rename(dir+"-away", dir); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, "us.yaml"), text)
		pass()
		expect(t, f, "with the folder again", "eu us")
	})
}

func TestFileWithATakenNameJoinsWhenTheNameIsFree(t *testing.T) {
	watched(t, func(f *fleet.Fleet, dir string, l *logs) {
		text := kubeconfig("", ", token: abcdefgh", "one")
		if err := f.JoinKubeconfig("eu", []byte(text), ""); err != nil {
			t.Fatal(err)
		}
		joined, _ := f.Cluster("eu")
		path := writeFile(t, filepath.Join(dir, "eu.yaml"), text)
		pass()
		if now, _ := f.Cluster("eu"); now != joined || !strings.Contains(l.String(), "there is a cluster of this name") {
			t.Errorf("the file replaced another cluster: %s", l)
		}
		if err := f.Leave(context.Background(), "eu"); err != nil {
			t.Fatal(err)
		}
		pass()
		own, ok := f.Cluster("eu")
		if !ok || own.Origin().Kind != fleet.FromFolder {
			t.Fatal("the cluster of the file has not joined although its name is free")
		}
		// The cluster leaves and another one joins with its name, which does not belong to the file.
		if err := f.Leave(context.Background(), "eu"); err != nil {
			t.Fatal(err)
		}
		if err := f.JoinKubeconfig("eu", []byte(text), ""); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		pass()
		expect(t, f, "the file is gone, the other stays", "eu")
	})
}

func TestMissingFolderIsAnError(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	_, err := f.FollowFolder(filepath.Join(t.TempDir(), "absent"))
	says(t, err, "folder of kubeconfigs", "absent")
}
