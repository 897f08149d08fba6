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

// watched runs a test on a folder that is watched. The fleet does not run, so nothing is
// asked of any cluster.
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

// pass lets the folder be looked at twice.
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

func TestAFolderOfKubeconfigsIsFollowed(t *testing.T) {
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
			t.Error("a file with another token has joined anew")
		}
		if now, _ := f.Cluster("us-a"); now != a {
			t.Error("a context that did not change has joined anew")
		}
		if now, _ := f.Cluster("us-b"); now == b {
			t.Error("a context that changed has not joined anew")
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
			t.Errorf("something was reported: %s", l)
		}
	})
}

func TestABrokenFileIsReportedOnceAndKeepsWhatItWas(t *testing.T) {
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
			t.Error("the cluster of a broken file did not stay")
		}
		if n := strings.Count(l.String(), "\n"); n != 1 || !strings.Contains(l.String(), "eu.yaml") ||
			strings.Contains(l.String(), "hunter2") {
			t.Errorf("reported %d times: %s", n, l)
		}
		writeFile(t, path, text)
		pass()
		if now, _ := f.Cluster("eu"); now != c {
			t.Error("the file is as it was, and the cluster is another")
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

func TestAFileWhoseNameIsTakenJoinsWhenItIsFree(t *testing.T) {
	watched(t, func(f *fleet.Fleet, dir string, l *logs) {
		text := kubeconfig("", ", token: abcdefgh", "one")
		if err := f.JoinKubeconfig("eu", []byte(text), ""); err != nil {
			t.Fatal(err)
		}
		joined, _ := f.Cluster("eu")
		path := writeFile(t, filepath.Join(dir, "eu.yaml"), text)
		pass()
		if now, _ := f.Cluster("eu"); now != joined || !strings.Contains(l.String(), "there is a cluster of this name") {
			t.Errorf("the file took the place of another: %s", l)
		}
		if err := f.Leave(context.Background(), "eu"); err != nil {
			t.Fatal(err)
		}
		pass()
		own, ok := f.Cluster("eu")
		if !ok || own.Origin().Kind != fleet.FromFolder {
			t.Fatal("the name is free, and the file has not joined")
		}
		// Somebody has it leave and joins another by its name: that one is not the file's.
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

func TestAFolderThatIsNotThereIsAnError(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	_, err := f.FollowFolder(filepath.Join(t.TempDir(), "absent"))
	says(t, err, "folder of kubeconfigs", "absent")
}
