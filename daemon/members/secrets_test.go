package members_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/members"
	"github.com/mirador-k8s/mirador/informertest"
)

func TestSecretsWithTheLabelAreMembers(t *testing.T) {
	eu := secret("eu", "kubeconfig", kubeconfig("https://127.0.0.1:1", "{token: hunter2hunter2}"))
	unlabelled := secret("none", "kubeconfig", kubeconfig("https://127.0.0.1:1", "{}"),
		func(s *corev1.Secret) { s.Labels = nil })
	elsewhere := secret("elsewhere", "kubeconfig", kubeconfig("https://127.0.0.1:1", "{}"),
		func(s *corev1.Secret) { s.Namespace = "other" })
	inWorld(t, members.Options{Secrets: labelled}, func(w *world) {
		first := w.member("eu")
		if first.Origin() != (fleet.Origin{Kind: fleet.FromSecret, Detail: "mirador/eu"}) {
			t.Errorf("Origin = %+v", first.Origin())
		}
		w.expect("at the start", "eu")
		us := secret("us-kubeconfig", "value", kubeconfig("https://127.0.0.1:2", "{}"))
		w.create(us)
		w.create(secret("x", "kubeconfig", kubeconfig("https://127.0.0.1:3", "{}"),
			func(s *corev1.Secret) { s.Annotations = map[string]string{"mirador.dev/name": "asia"} }))
		w.expect("added", "asia eu us")

		before := first.ConfigNumber()
		w.update(secret("eu", "kubeconfig", kubeconfig("https://127.0.0.1:1", "{token: another-one}")))
		w.expect("another token", "asia eu us")
		if w.member("eu") != first || first.ConfigNumber() == before {
			t.Error("another token is not used, or the cluster joined again because of it")
		}
		w.update(secret("eu", "kubeconfig", kubeconfig("https://127.0.0.1:9", "{token: another-one}")))
		w.expect("another server", "asia eu us")
		if w.member("eu") == first {
			t.Error("another server's cluster is still the old one")
		}
		w.delete(us)
		w.expect("deleted", "asia eu")
		w.update(secret("eu", "kubeconfig", kubeconfig("https://127.0.0.1:9", "{}"),
			func(s *corev1.Secret) { s.Labels = nil }))
		w.expect("without the label", "asia")
		text := w.logs.String()
		if strings.Count(text, "\n") != 1 || !strings.Contains(text, `"fleet: a cluster joins anew" cluster=eu`) {
			t.Errorf("the log has more than that another server has the name eu:\n%s", text)
		}
		for _, r := range w.home.Requests() {
			if r.Namespace != namespace || r.Query.Get("labelSelector") != labelled {
				t.Errorf("the home cluster was asked %s %s?%s", r.Verb, r.Path, r.Query.Encode())
			}
		}
	}, eu, unlabelled, elsewhere)
}

func TestUnusableSecretIsLoggedOnceAndItsClusterStays(t *testing.T) {
	for name, c := range map[string]struct{ key, content, says string }{
		"no key":  {"config", "x", "neither the key"},
		"no YAML": {"kubeconfig", "hunter2: [", "not a kubeconfig"},
		"a program": {"kubeconfig", kubeconfig("https://a",
			"{exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}}"), "runs a program"},
		"a file":     {"kubeconfig", kubeconfig("https://a", "{tokenFile: /etc/passwd}"), "names a file"},
		"no address": {"kubeconfig", kubeconfig("file:///etc/passwd", "{}"), "not an http or https URL"},
	} {
		t.Run(name, func(t *testing.T) {
			eu := secret("eu", "kubeconfig", kubeconfig("https://127.0.0.1:1", "{token: hunter2hunter2}"))
			inWorld(t, members.Options{Secrets: labelled}, func(w *world) {
				first := w.member("eu")
				w.update(secret("eu", c.key, c.content))
				w.create(secret("us", c.key, c.content))
				for range 20 {
					w.expect("unusable", "eu")
				}
				if w.member("eu") != first {
					t.Error("the cluster of an unusable Secret joined again")
				}
				text := w.logs.String()
				if n := strings.Count(text, "\n"); n != 2 || strings.Count(text, c.says) != 2 ||
					strings.Contains(text, "hunter2") {
					t.Errorf("%d lines: %s", n, text)
				}
				w.update(secret("us", "kubeconfig", kubeconfig("https://127.0.0.1:2", "{}")))
				w.expect("mended", "eu us")
			}, eu)
		})
	}
}

func TestSecretWithATakenNameJoinsWhenTheNameIsFree(t *testing.T) {
	inWorld(t, members.Options{Secrets: labelled}, func(w *world) {
		check(t, w.f.JoinKubeconfig("eu", []byte(kubeconfig("https://127.0.0.1:2", "{}")), ""))
		w.create(secret("eu", "kubeconfig", kubeconfig("https://127.0.0.1:1", "{}")))
		w.expect("taken", "eu")
		if kind := w.member("eu").Origin().Kind; kind != fleet.FromJoin {
			t.Errorf("a Secret replaced a cluster that had joined: it is from %s now", kind)
		}
		check(t, w.f.Leave(t.Context(), "eu"))
		for range 6 {
			w.expectAny()
		}
		if kind := w.member("eu").Origin().Kind; kind != fleet.FromSecret {
			t.Errorf("the cluster is from %s", kind)
		}
	})
}

// Other credentials are used in place: the watch goes on, nothing is listed again, and the store keeps what it has.
func TestAnotherTokenInASecretEndsNoWatch(t *testing.T) {
	member, address := newGuarded(t)
	pod := func(name string) {
		_, err := member.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name}})
		check(t, err)
	}
	pod("a")
	home := informertest.NewServer()
	_, err := home.Create(secret("eu", "kubeconfig", kubeconfig(address, "{token: token-of-old}")))
	check(t, err)
	cfg, stop := informertest.Pipe(home)
	defer stop()
	l := &logs{}
	f, err := fleet.New(fleet.Options{Include: []string{"pods", "namespaces"}, WithoutOpenAPI: true, Logger: l.logger()})
	check(t, err)
	m, err := members.New(f, members.Options{Config: cfg, Namespace: namespace, Secrets: labelled, Logger: l.logger()})
	check(t, err)
	defer running(t, f.Run, m.Run)()

	var eu *fleet.Cluster
	var pods *fleet.Resource
	eventually(t, "pods are mirrored", func() (ok bool) {
		if eu, ok = f.Cluster("eu"); ok {
			pods, ok = eu.Resource(podsGVR)
		}
		return ok && pods.Synced() && member.OpenWatches() == 2
	})
	lists, watches := member.count("token-of-old list"), member.count("token-of-old watch")

	_, err = home.Update(secret("eu", "kubeconfig", kubeconfig(address, "{token: token-of-new}")))
	check(t, err)
	eventually(t, "the new token is used", func() bool { return member.count("token-of-new") > 0 })
	member.deny("token-of-old") // as when it expires
	pod("b")
	eventually(t, "the open watch goes on", func() bool { return pods.Snapshot().Len() == 2 })
	if now := member.count("token-of-old watch") + member.count("token-of-new watch"); now != watches {
		t.Errorf("%d watches were opened, and were %d", now, watches)
	}
	member.CutWatches()
	eventually(t, "the next watch has the new token", func() bool { return member.count("token-of-new watch") > 0 })
	pod("c")
	eventually(t, "c is mirrored", func() bool { return pods.Snapshot().Len() == 3 })
	if now, later := member.count("token-of-old list"), member.count("token-of-new list"); now != lists || later != 0 {
		t.Errorf("lists: %d with the old token, and were %d; %d with the new one", now, lists, later)
	}
	if now, _ := f.Cluster("eu"); now != eu {
		t.Error("the cluster has left and joined again")
	}
	select {
	case <-pods.Done():
		t.Error("the mirror of pods has ended")
	default:
	}
	if text := l.String(); strings.Contains(text, "token-of-") {
		t.Errorf("a token is in the log: %s", text)
	}
}
