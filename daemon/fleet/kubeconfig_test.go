package fleet_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// kubeconfig returns a kubeconfig with contexts, each with a cluster and a user of its name.
func kubeconfig(clusterExtra, userExtra string, contexts ...string) string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: Config\ncurrent-context: " + contexts[0] + "\nclusters:\n")
	for _, c := range contexts {
		b.WriteString("- name: " + c + "\n  cluster: {server: 'https://192.0.2.1:6443/" + c + "'" + clusterExtra + "}\n")
	}
	b.WriteString("users:\n")
	for _, c := range contexts {
		b.WriteString("- name: " + c + "\n  user: {" + strings.TrimPrefix(userExtra, ", ") + "}\n")
	}
	b.WriteString("contexts:\n")
	for _, c := range contexts {
		b.WriteString("- name: " + c + "\n  context: {cluster: " + c + ", user: " + c + "}\n")
	}
	return b.String()
}

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newFleet(t *testing.T, o fleet.Options) *fleet.Fleet {
	t.Helper()
	o.Logger = quiet()
	f, err := fleet.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestKubeconfigThatWouldRunOrReadSomethingLocalIsRefused(t *testing.T) {
	secret := writeFile(t, filepath.Join(t.TempDir(), "secret"), "the-content-of-a-file")
	for field, c := range map[string]struct{ cluster, user string }{
		"exec": {"",
			", exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [/tmp/x], interactiveMode: Never}"},
		"auth-provider":         {"", ", auth-provider: {name: oidc}"},
		"certificate-authority": {", certificate-authority: " + secret, ", token: abcdefgh"},
		"client-certificate":    {"", ", client-certificate: " + secret},
		"client-key":            {"", ", client-key: " + secret},
		"tokenFile":             {"", ", tokenFile: " + secret},
		"proxy-url":             {", proxy-url: 'socks5://192.0.2.9:1080'", ", token: abcdefgh"},
		"server":                {", server: 'file:///etc'", ", token: abcdefgh"},
	} {
		t.Run(field, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state.json")
			f := newFleet(t, fleet.Options{StateFile: state})
			text := kubeconfig(c.cluster, c.user, "eu")
			if field == "server" {
				text = strings.Replace(text, "server: 'https://192.0.2.1:6443/eu', ", "", 1)
			}
			err := f.JoinKubeconfig("eu", []byte(text), "")
			says(t, err, `join cluster "eu"`, field+" ")
			if strings.Contains(err.Error(), "the-content-of-a-file") {
				t.Errorf("the error shows a file's content: %v", err)
			}
			if len(f.Clusters()) != 0 {
				t.Error("the cluster has joined")
			}
			if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
				t.Error("the cluster is in the state file")
			}
		})
	}
}

// The parts that a context does not use are dropped, and so cannot do any harm.
func TestOnlyThePartsThatTheContextUsesAreCheckedAndKept(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.json")
	f := newFleet(t, fleet.Options{StateFile: state})
	text := kubeconfig(", proxy-url: 'http://192.0.2.9:3128'", ", token: abcdefgh", "eu", "us")
	text = strings.Replace(text, "name: us\n  user: {token: abcdefgh}",
		"name: us\n  user: {exec: {apiVersion: v1, command: touch}}", 1)
	if err := f.JoinKubeconfig("one", []byte(text), ""); err != nil {
		t.Fatal(err)
	}
	says(t, f.JoinKubeconfig("two", []byte(text), "us"), "exec")
	says(t, f.JoinKubeconfig("two", []byte(text), "asia"), `no context "asia"`, "eu, us")
	says(t, f.JoinKubeconfig("one", []byte(text), "eu"), "there is a cluster of this name")
	if got := f.Clusters()[0].Origin(); got != (fleet.Origin{Kind: "joined", Detail: "https://192.0.2.1:6443/eu"}) {
		t.Errorf("Origin = %+v", got)
	}
	body, err := os.ReadFile(state)
	if err != nil || strings.Contains(string(body), "touch") || !strings.Contains(string(body), "abcdefgh") {
		t.Errorf("the state file: %s, %v", body, err)
	}
}

func TestMalformedKubeconfigIsRefusedWithoutQuotingIt(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	for name, text := range map[string]string{
		"empty":       "",
		"no yaml":     "token: hunter2hunter2\n\t: x",
		"other type":  `{"clusters": "hunter2hunter2"}`,
		"other kind":  "apiVersion: v1\nkind: Secret\nmetadata: {name: hunter2hunter2}",
		"too large":   strings.Repeat("# hunter2hunter2\n", 100_000),
		"no cluster":  "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts:\n- name: a\n  context: {cluster: b}",
		"no user":     strings.Replace(kubeconfig("", ", token: hunter2hunter2", "eu"), "user: eu", "user: us", 1),
		"bad ca data": kubeconfig(", certificate-authority-data: aHVudGVyMg==", ", token: hunter2hunter2", "eu"),
	} {
		err := f.JoinKubeconfig("eu", []byte(text), "")
		if err == nil || strings.Contains(err.Error(), "hunter2") || len(err.Error()) > 600 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(f.Clusters()) != 0 {
		t.Error("a cluster has joined")
	}
}

func TestEachContextOfAFileIsACluster(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "config"),
		strings.ReplaceAll(kubeconfig("", ", token: abcdefgh", "eu", "us-1"), "us-1", "arn:aws:eks:US/Prod@x"))
	got, err := fleet.FromKubeconfig(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for name, cfg := range got {
		if cfg.BearerToken != "abcdefgh" {
			t.Errorf("%s: %v", name, cfg)
		}
		found = append(found, name)
	}
	slices.Sort(found)
	if strings.Join(found, " ") != "arn-aws-eks-us-prod-x eu" {
		t.Errorf("clusters %q", found)
	}
	if got, err := fleet.FromKubeconfig(path, "eu"); err != nil || len(got) != 1 {
		t.Errorf("one context: %v, %v", got, err)
	}
	_, err = fleet.FromKubeconfig(path, "asia")
	says(t, err, path, `no context "asia"`)
}

// The operator's own kubeconfig may run plugins and name files relative to itself.
func TestOperatorsKubeconfigMayNameFilesAndPlugins(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "token"), "abcdefgh")
	path := writeFile(t, filepath.Join(dir, "config"), kubeconfig("", ", tokenFile: token", "eu"))
	got, err := fleet.FromKubeconfig(path)
	if err != nil || got["eu"].BearerTokenFile != filepath.Join(dir, "token") {
		t.Errorf("%v, %v", got, err)
	}
	writeFile(t, path,
		kubeconfig("", ", exec: {apiVersion: client.authentication.k8s.io/v1, command: echo, interactiveMode: Never}", "eu"))
	got, err = fleet.FromKubeconfig(path)
	if err != nil || got["eu"].ExecProvider == nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestFilesOfKubeconfigAreMerged(t *testing.T) {
	dir := t.TempDir()
	eu := writeFile(t, filepath.Join(dir, "eu"), kubeconfig("", ", token: a", "eu"))
	us := writeFile(t, filepath.Join(dir, "us"), kubeconfig("", ", token: b", "us", "asia"))
	separator := string(filepath.ListSeparator)
	t.Setenv("KUBECONFIG", eu+separator+filepath.Join(dir, "none")+separator+us)
	list := fleet.DefaultKubeconfig()
	if list != eu+separator+us {
		t.Errorf("the files are %q", list)
	}
	whole, err := fleet.LoadKubeconfig(list)
	if err != nil || whole.CurrentContext != "eu" || len(whole.Contexts) != 3 {
		t.Errorf("merged: %+v, %v", whole, err)
	}
	found, err := fleet.FromKubeconfig(list)
	if err != nil || len(found) != 3 || found["asia"] == nil || found["asia"].BearerToken != "b" {
		t.Errorf("the clusters are %v, %v", found, err)
	}
	if _, err := fleet.FromKubeconfig(eu + separator + filepath.Join(dir, "none")); err == nil ||
		!strings.Contains(err.Error(), "none: there is no such file") {
		t.Errorf("a list with a file that is missing: %v", err)
	}
	f := newFleet(t, fleet.Options{})
	if _, err := f.FollowKubeconfig(list, "eu", "us"); err != nil || len(f.Clusters()) != 2 {
		t.Errorf("followed: %v, %v", f.Clusters(), err)
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none")+separator+us)
	if got := fleet.DefaultKubeconfig(); got != us {
		t.Errorf("the only file is %q", got)
	}
}

func TestContextsWithTheSameClusterNameAreAnError(t *testing.T) {
	dir := t.TempDir()
	_, err := fleet.FromKubeconfig(writeFile(t, filepath.Join(dir, "a"),
		kubeconfig("", ", token: abcdefgh", "eu_1", "eu-1")))
	says(t, err, `"eu-1"`, `"eu_1"`, "rename one")
	_, err = fleet.FromKubeconfig(writeFile(t, filepath.Join(dir, "b"), kubeconfig("", ", token: abcdefgh", "___")))
	says(t, err, "___", "rename it")
	_, err = fleet.FromKubeconfig(writeFile(t, filepath.Join(dir, "c"), "apiVersion: v1\nkind: Config\n"))
	says(t, err, "no contexts")
	_, err = fleet.FromKubeconfig(filepath.Join(dir, "absent"))
	says(t, err, "absent", "no such file")
}
