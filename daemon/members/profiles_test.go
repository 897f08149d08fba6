package members_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/members"
	"github.com/mirador-k8s/mirador/informertest"
)

// profile returns a ClusterProfile with access providers in JSON.
func profile(t testing.TB, name, providers string) *unstructured.Unstructured {
	t.Helper()
	var list []any
	check(t, json.Unmarshal([]byte(providers), &list))
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":     map[string]any{"clusterManager": map[string]any{"name": "test"}},
		"status":   map[string]any{"accessProviders": list},
	}}
}

func provider(name, server, extension string) string {
	return `{"name": "` + name + `", "cluster": {"server": "` + server + `", "insecure-skip-tls-verify": true,
		"extensions": [{"name": "client.authentication.k8s.io/exec", "extension": ` + extension + `}]}}`
}

func plain(name, key, content string) *corev1.Secret {
	return secret(name, key, content, func(s *corev1.Secret) { s.Labels = nil })
}

func TestClusterProfilesAreMembers(t *testing.T) {
	token := "[" + provider("unknown", "https://127.0.0.1:7", "{}") + "," +
		provider("secretreader", "https://127.0.0.1:1", `{"clusterName": "spoke"}`) + "]"
	whole := "[" + provider("kubeconfig-secretreader", "https://127.0.0.1:2",
		`{"name": "config", "key": "value", "context": "one"}`) + "]"
	inWorld(t, members.Options{Profiles: true, Secrets: labelled}, func(w *world) {
		w.expect("at the start", "eu labelled us")
		for name, address := range map[string]string{"eu": "https://127.0.0.1:1", "us": "https://127.0.0.1:2"} {
			c := w.member(name)
			if c.ServerURL() != address || c.Origin().Kind != fleet.FromProfile {
				t.Errorf("%s is at %s, from %s", name, c.ServerURL(), c.Origin().Kind)
			}
		}
		first := w.member("eu")
		before := first.ConfigNumber()
		w.update(plain("spoke", "token", "another"))
		w.expect("another token", "eu labelled us")
		if w.member("eu") != first || first.ConfigNumber() == before {
			t.Error("another token is not used, or the cluster joined again because of it")
		}
		w.delete(profile(t, "us", "[]"))
		w.expect("deleted", "eu labelled")
		if w.logs.String() != "" {
			t.Errorf("something was logged:\n%s", w.logs)
		}
		for _, r := range w.home.Requests() {
			if r.Namespace != namespace {
				t.Errorf("the home cluster was asked %s %s", r.Verb, r.Path)
			}
		}
	}, profile(t, "eu", token), plain("spoke", "token", "one"), profile(t, "us", whole),
		plain("config", "value", kubeconfig("https://elsewhere", "{token: other}")),
		secret("labelled", "kubeconfig", kubeconfig("https://127.0.0.1:3", "{}")))
}

func TestUnusableClusterProfileSaysWhy(t *testing.T) {
	spoke := plain("spoke", "token", "hunter2hunter2")
	token := func(ref string) string { return "[" + provider("secretreader", "https://a", ref) + "]" }
	whole := func(ref string) string { return "[" + provider("kubeconfig-secretreader", "https://a", ref) + "]" }
	for name, c := range map[string]struct{ providers, says string }{
		"not ready":    {`[]`, "no access providers in its status yet"},
		"unknown":      {"[" + provider("aws", "https://a", "{}") + "]", "--clusterprofile-provider-file"},
		"no Secret":    {token(`{"clusterName": "none"}`), "there is no Secret none"},
		"no name":      {token(`{}`), "needs the clusterName"},
		"malformed":    {token(`[]`), "is malformed"},
		"no extension": {`[{"name": "secretreader", "cluster": {"server": "https://a"}}]`, "has no extension"},
		"no cluster":   {`[{"name": "secretreader"}]`, "no cluster that can be read"},
		"another place": {whole(`{"name": "spoke", "key": "token", "namespace": "kube-system"}`),
			"only Secrets of mirador are read"},
		"no key":        {whole(`{"name": "spoke"}`), "name and the key"},
		"no kubeconfig": {whole(`{"name": "spoke", "key": "token"}`), "has no kubeconfig"},
		"a file": {`[{"name": "secretreader", "cluster": {"server": "https://a", "certificate-authority": "/etc/passwd",
			"extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"clusterName": "spoke"}}]}}]`,
			"names a file"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, members.Options{Profiles: true}, func(w *world) {
				for range 12 {
					w.expect("unusable", "")
				}
				text := w.logs.String()
				if n := strings.Count(text, "\n"); n != 1 || !strings.Contains(text, c.says) || strings.Contains(text, "hunter2") {
					t.Errorf("%d lines: %s", n, text)
				}
				w.update(profile(t, "eu", token(`{"clusterName": "spoke"}`)))
				w.expect("mended", "eu")
			}, profile(t, "eu", c.providers), spoke)
		})
	}
}

// Secrets are followed although ClusterProfile is not installed, and its objects as soon as it is.
func TestSecretsDoNotWaitForClusterProfiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, home: informertest.NewServer(), logs: &logs{}}
		w.create(secret("us", "kubeconfig", kubeconfig("https://127.0.0.1:2", "{}")))
		w.create(plain("spoke", "token", "one"))
		cfg, stop := informertest.Pipe(w.home)
		defer stop()
		var err error
		w.f, err = fleet.New(fleet.Options{Logger: w.logs.logger()})
		check(t, err)
		m, err := members.New(w.f, members.Options{Config: cfg, Namespace: namespace, Secrets: labelled, Profiles: true,
			Logger: w.logs.logger()})
		check(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		w.expect("without the kind", "us")
		select {
		case <-m.Known():
			t.Error("the members are known although ClusterProfile objects were not read")
		default:
		}
		check(t, w.home.Register(profilesGVR, "ClusterProfile", true))
		w.create(profile(t, "eu", "["+provider("secretreader", "https://127.0.0.1:1", `{"clusterName": "spoke"}`)+"]"))
		<-m.Known()
		w.expect("with the kind", "eu us")
		cancel()
		check(t, <-ended)
	})
}

// A plugin that the operator names gets the configuration of the profile, and what the policies let it have.
func TestCredentialPluginOfAProfile(t *testing.T) {
	member, address := newGuarded(t)
	providers, err := members.ParseProviders([]byte(`{"providers": [{"name": "plugin",
		"profileSourcedCLIArgsPolicy": "Append", "profileSourcedEnvVarsPolicy": "AppendIfNotExists",
		"execConfig": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "provideClusterInfo": true,
			"args": ["-c", "case $KUBERNETES_EXEC_INFO in *audience-of-eu*) ;; *) exit 1;; esac; echo '{\"apiVersion\":` +
		`\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"'$FIXED-$ADDED-$0'\"}}'"],
			"env": [{"name": "FIXED", "value": "operator"}]}}]}`))
	check(t, err)
	home := informertest.NewServer()
	check(t, home.Register(profilesGVR, "ClusterProfile", true))
	_, err = home.Create(profile(t, "eu", `[{"name": "plugin", "cluster": {"server": "`+address+`",
		"insecure-skip-tls-verify": true, "extensions": [
		{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "audience-of-eu"}},
		{"name": "clusterprofiles.multicluster.x-k8s.io/exec/additional-args", "extension": ["argument"]},
		{"name": "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs",
			"extension": {"FIXED": "profile", "ADDED": "profile"}}]}}]`))
	check(t, err)
	cfg, stop := informertest.Pipe(home)
	defer stop()
	l := &logs{}
	f, err := fleet.New(fleet.Options{Include: []string{"pods"}, WithoutOpenAPI: true, Logger: l.logger()})
	check(t, err)
	m, err := members.New(f, members.Options{Config: cfg, Namespace: namespace, Profiles: true, Providers: providers,
		Logger: l.logger()})
	check(t, err)
	defer running(t, f.Run, m.Run)()
	eventually(t, "the member is asked with the token of the plugin", func() bool {
		return member.count("operator-profile-argument") > 0
	})
	eventually(t, "pods are mirrored", func() bool {
		if eu, ok := f.Cluster("eu"); ok {
			pods, ok := eu.Resource(podsGVR)
			return ok && pods.Synced()
		}
		return false
	})
}

func TestProviderFileIsChecked(t *testing.T) {
	for text, says := range map[string]string{
		`{"provider": []}`:               "not a file of providers",
		`{"providers": [{"name": "a"}]}`: "needs a name, and an execConfig",
		`{"providers": [{"name": "a", "execConfig": {"apiVersion": "v1", "command": "x"},
			"profileSourcedCLIArgsPolicy": "Replace"}]}`: "Append or Ignore",
		`{"providers": [{"name": "a", "execConfig": {"apiVersion": "v1", "command": "x"},
			"profileSourcedEnvVarsPolicy": "Append"}]}`: "AppendIfNotExists, Replace or Ignore",
	} {
		if _, err := members.ParseProviders([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
	got, err := members.ParseProviders([]byte("providers:\n- name: a\n  execConfig:\n    apiVersion: v1\n" +
		"    command: x\n    args: null\n    env: null\n    provideClusterInfo: true\n"))
	if err != nil || len(got) != 1 || !got[0].ExecConfig.ProvideClusterInfo {
		t.Errorf("%+v, %v", got, err)
	}
}
