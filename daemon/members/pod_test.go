package members_test

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/members"
)

func inPod(name string) string {
	return map[string]string{"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}[name]
}

// account returns a folder like that of a pod's service account, and a function that writes into it.
func account(t *testing.T) (folder string, write func(name, content string)) {
	t.Helper()
	folder = t.TempDir()
	write = func(name, content string) {
		t.Helper()
		check(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	write("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write("token", "first\n")
	return folder, write
}

func TestAPodReachesItsCluster(t *testing.T) {
	folder, write := account(t)
	for _, namespace := range []string{"", "mirador"} {
		cfg, got, err := members.InPod(inPod, folder)
		check(t, err)
		if cfg.Host != "https://[fd00::1]:443" || cfg.BearerToken != "first" || cfg.CAFile == "" || got != namespace {
			t.Errorf("%s with %s and %s, namespace %q", cfg.Host, cfg.BearerToken, cfg.CAFile, got)
		}
		write("namespace", "mirador\n")
	}
	if _, _, err := members.InPod(func(string) string { return "" }, folder); !errors.Is(err, members.ErrNoPod) {
		t.Errorf("outside of a pod: %v", err)
	}
	write("ca.crt", "nonsense")
	if _, _, err := members.InPod(inPod, folder); err == nil || !strings.Contains(err.Error(), "service account") {
		t.Errorf("without a certificate authority: %v", err)
	}
	if _, _, err := members.InPod(inPod, t.TempDir()); err == nil || !strings.Contains(err.Error(), "automount") {
		t.Errorf("without a token: %v", err)
	}
}

// A kubelet replaces the token of a pod long before it expires.
func TestTheTokenOfAPodIsReadAgain(t *testing.T) {
	folder, write := account(t)
	synctest.Test(t, func(t *testing.T) {
		cfg, _, err := members.InPod(inPod, folder)
		check(t, err)
		sent := ""
		cfg.TLSClientConfig = rest.TLSClientConfig{}
		cfg.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			sent = r.Header.Get("Authorization")
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
		})
		client, err := rest.HTTPClientFor(cfg)
		check(t, err)
		for _, token := range []string{"first", "second"} {
			write("token", token)
			<-time.After(2 * time.Minute)
			resp, err := client.Get(cfg.Host)
			check(t, err)
			resp.Body.Close()
			if sent != "Bearer "+token {
				t.Errorf("%q was sent, and the token is %q", sent, token)
			}
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
