package main

import (
	"bufio"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informertest"
)

// podOf makes this process look like a pod of a cluster, without a kubeconfig, and returns the flags of a daemon in it.
func podOf(t *testing.T, cluster http.Handler) *serveFlags {
	t.Helper()
	server := httptest.NewTLSServer(cluster)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	at, err := url.Parse(server.URL)
	check(t, err)
	host, port, err := net.SplitHostPort(at.Host)
	check(t, err)
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	folder := t.TempDir()
	for name, content := range map[string]string{"token": "token-of-the-pod", "namespace": "mirador",
		"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))} {
		check(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	return &serveFlags{listen: "127.0.0.1:0", authorization: "rbac", logFormat: "text", startGrace: time.Minute,
		include: []string{"pods", "namespaces"}, home: homeFlags{account: folder}}
}

// onlyWithToken answers requests that have the token of the pod.
func onlyWithToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token-of-the-pod" {
			http.Error(w, "another token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serving runs a daemon in this process and returns a function that gets a path.
func serving(t *testing.T, f *serveFlags) (get func(path string) (int, string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, to := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := serve(ctx, f, to)
		to.CloseWithError(err)
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		check(t, <-ended)
	})
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	m := pageAddress.FindStringSubmatch(line)
	if err != nil || m == nil {
		t.Fatalf("the daemon said %q, %v", line, err)
	}
	go io.Copy(io.Discard, lines) // until it ends
	client := plain(t)
	return func(path string) (int, string) {
		resp, err := client.Get(m[1] + path)
		check(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		check(t, err)
		return resp.StatusCode, string(body)
	}
}

func untilAnswered(t *testing.T, get func(string) (int, string), path, word string) {
	t.Helper()
	until(t, func() string {
		if code, body := get(path); code != http.StatusOK || !strings.Contains(body, word) {
			return fmt.Sprintf("%s is answered %d %s", path, code, body)
		}
		return ""
	})
}

func TestAPodWithoutFlagsMirrorsItsOwnCluster(t *testing.T) {
	for name, flag := range map[string]string{"home": "", "management": "management"} {
		t.Run(name, func(t *testing.T) {
			cluster := informertest.NewServer()
			_, err := cluster.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "a"}})
			check(t, err)
			f := podOf(t, onlyWithToken(cluster))
			f.home.name = flag
			get := serving(t, f)
			untilAnswered(t, get, "/clusters/"+name+"/api/v1/namespaces/web/pods/a", `"a"`)
			untilAnswered(t, get, "/clusters", `"origin":"home"`)
		})
	}
}

// A client that lists must not take the objects of clusters that have not joined yet for deleted ones.
func TestTheStartWaitsForMembersOfSecrets(t *testing.T) {
	member := informertest.NewServer()
	_, err := member.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "a"}})
	check(t, err)
	there := httptest.NewServer(member)
	t.Cleanup(func() {
		there.CloseClientConnections()
		there.Close()
	})
	home := informertest.NewServer()
	_, err = home.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "mirador", Name: "eu",
		Labels: map[string]string{"member": "yes"}}, Data: map[string][]byte{"kubeconfig": []byte(
		"apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: c\n  cluster: {server: " + there.URL +
			"}\ncontexts:\n- name: c\n  context: {cluster: c}\n")}})
	check(t, err)
	var asked atomic.Bool
	free := make(chan struct{})
	f := podOf(t, onlyWithToken(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/namespaces/mirador/secrets") {
			asked.Store(true)
			select {
			case <-free:
			case <-r.Context().Done():
				return
			}
		}
		home.ServeHTTP(w, r)
	})))
	f.home.secrets = "member=yes"
	get := serving(t, f)
	until(t, func() string {
		if !asked.Load() {
			return "the home cluster is not asked for Secrets"
		}
		return ""
	})
	for path, code := range map[string]int{"/readyz": 503, "/fleet/api/v1/pods": 503, "/livez": 200} {
		if got, body := get(path); got != code {
			t.Errorf("%s is answered %d %s", path, got, body)
		}
	}
	close(free)
	untilAnswered(t, get, "/readyz", "ok")
	if code, body := get("/fleet/api/v1/pods"); code != http.StatusOK || !strings.Contains(body, `"a"`) {
		t.Errorf("the first list is answered %d %s", code, body)
	}
	if _, body := get("/clusters"); !strings.Contains(body, `"origin":"secret"`) || strings.Contains(body, `"home"`) {
		t.Errorf("the clusters are %s", body)
	}
}

func TestFlagsOfTheHomeClusterAreForAPod(t *testing.T) {
	for _, c := range []struct {
		h    homeFlags
		pod  bool
		says string
	}{
		{homeFlags{name: "home"}, false, "does not run in a pod"},
		{homeFlags{secrets: "a=b"}, false, "does not run in a pod"},
		{homeFlags{name: "Not a name"}, true, "not a DNS label"},
		{homeFlags{secrets: "a=b=c"}, true, "the label selector of Secrets is malformed"},
		{homeFlags{namespace: "x"}, true, "--member-secrets"},
		{homeFlags{profiles: true, providers: "absent"}, true, "--clusterprofile-provider-file"},
	} {
		f := podOf(t, informertest.NewServer())
		if !c.pod {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
		}
		c.h.account = f.home.account
		f.home = c.h
		if err := serve(t.Context(), f, io.Discard); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.h, err)
		}
	}
}

// Whoever may write Secrets in the namespace of the members must not decide who the users of the daemon are.
func TestAClusterOfASecretReviewsNoTokens(t *testing.T) {
	for kind, asks := range map[string]bool{fleet.FromHome: true, fleet.FromSecret: false, fleet.FromProfile: false} {
		cluster := informertest.NewServer()
		cfg, stop := informertest.Pipe(cluster)
		fl, err := fleet.New(fleet.Options{Logger: slog.New(slog.DiscardHandler)})
		check(t, err)
		check(t, fl.Join("eu", cfg, fleet.Origin{Kind: kind}))
		var f authenticationFlags
		f.options.TokenReview.Cluster = "eu"
		users, err := f.authenticator(false, func() *fleet.Fleet { return fl }, slog.New(slog.DiscardHandler))
		check(t, err)
		r := httptest.NewRequest(http.MethodGet, "http://localhost/clusters", nil)
		r.Header.Set("Authorization", "Bearer some-token-of-a-user")
		if u, ok, _ := users.Authenticate(r); ok {
			t.Errorf("%s: the user is %v", kind, u)
		}
		if asked := len(cluster.Requests()) > 0; asked != asks {
			t.Errorf("%s: the cluster was asked: %t", kind, asked)
		}
		check(t, fl.Leave(t.Context(), "eu"))
		stop()
	}
}
