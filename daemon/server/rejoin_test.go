package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// withoutUpdates allows everything but updates.
type withoutUpdates struct{ allowAll }

func (withoutUpdates) Decide(_ context.Context, _ user.Info, _ string, a access.Attributes) (access.Decision, error) {
	return access.Decision{Allowed: a.Verb != "update"}, nil
}

// A cluster that joins again gets the new credentials if the user may update clusters, and only if it is the same one.
func TestAClusterJoinsAgainWithOtherCredentials(t *testing.T) {
	for _, c := range []struct {
		rights  Authorizer
		address string
		code    int
		used    bool
	}{
		{rights: allowAll{}, address: "https://192.0.2.1:6443", code: http.StatusOK, used: true},
		{rights: withoutUpdates{}, address: "https://192.0.2.1:6443", code: http.StatusConflict},
		{rights: allowAll{}, address: "https://192.0.2.1:6444", code: http.StatusConflict},
	} {
		fl, err := fleet.New(fleet.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(fl, Options{Authorizer: c.rights})
		if err != nil {
			t.Fatal(err)
		}
		post := func(address, token string) *httptest.ResponseRecorder {
			t.Helper()
			body, err := json.Marshal(map[string]string{"name": "eu", "kubeconfig": `{"apiVersion": "v1", "kind": "Config",
				"current-context": "c", "users": [{"name": "u", "user": {"token": "` + token + `"}}],
				"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
				"clusters": [{"name": "c", "cluster": {"server": "` + address + `"}}]}`})
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodPost, "http://localhost/clusters", strings.NewReader(string(body)))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w
		}
		if w := post("https://192.0.2.1:6443", "hunter1hunter1"); w.Code != http.StatusCreated {
			t.Fatalf("the first time: %d %s", w.Code, w.Body)
		}
		eu, _ := fl.Cluster("eu")
		before := eu.ConfigNumber()
		w := post(c.address, "hunter2hunter2")
		if w.Code != c.code || strings.Contains(w.Body.String(), "hunter") {
			t.Errorf("%T, %s: %d %s", c.rights, c.address, w.Code, w.Body)
		}
		if used := eu.ConfigNumber() != before; used != c.used {
			t.Errorf("%T, %s: the new credentials are used: %t", c.rights, c.address, used)
		}
		if now, _ := fl.Cluster("eu"); now != eu {
			t.Errorf("%T, %s: the cluster has left", c.rights, c.address)
		}
	}
}
