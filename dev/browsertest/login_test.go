package browsertest

import (
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/identity"
	"github.com/mirador-k8s/mirador/daemon/login"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/daemon/web"
	"github.com/mirador-k8s/mirador/dev/testcluster"
	"github.com/mirador-k8s/mirador/dev/testissuer"
)

// startIssuer serves an OIDC issuer at localhost, which is another site than the daemon at 127.0.0.1.
func startIssuer(t *testing.T) *testissuer.Issuer {
	t.Helper()
	issuer := testissuer.New(t, "", map[string]crypto.Signer{"k": testissuer.NewECKey(t)})
	listener := httptest.NewUnstartedServer(issuer)
	listener.TLS = &tls.Config{Certificates: []tls.Certificate{issuer.Authority.Sign(t, "issuer")}}
	listener.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	listener.StartTLS()
	t.Cleanup(listener.Close)
	issuer.URL = strings.Replace(listener.URL, "127.0.0.1", "localhost", 1)
	return issuer
}

// startDaemonWithLogins serves one cluster, eu, with its own rights, to users that log in at an issuer.
func startDaemonWithLogins(t *testing.T, cluster *testcluster.Cluster, issuer *testissuer.Issuer) *daemon {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(t.TempDir(), "authentication.yaml")
	check(os.WriteFile(config, []byte(testissuer.Configuration(issuer.Entry(`  claimMappings:
    username: {claim: sub, prefix: ""}
    groups: {claim: groups, prefix: "oidc:"}
`))), 0o600))
	users, err := identity.New(identity.Options{AuthenticationConfig: config})
	check(err)
	fl, err := fleet.New(fleet.Options{Include: []string{"pods", "namespaces", "configmaps",
		"*.rbac.authorization.k8s.io"}})
	check(err)
	check(fl.Join("eu", cluster.Config(), fleet.Origin{Kind: "kubeconfig"}))
	rights, err := access.New(fl, access.Options{})
	check(err)
	listener := httptest.NewUnstartedServer(nil)
	d := &daemon{fleet: fl, url: "http://" + listener.Listener.Addr().String()}
	logins, err := login.New(login.Options{URL: d.url, ClientID: "mirador", Users: users})
	check(err)
	srv, err := server.New(fl, server.Options{Access: server.Access{Authenticator: logins}, Authorizer: rights,
		Page: web.Handler(), Login: logins})
	check(err)
	listener.Config.Handler = srv
	listener.Start()
	ctx, cancel := context.WithCancel(context.Background())
	parts := []func(context.Context) error{fl.Run, users.Run, rights.Run, srv.Run}
	ended := make(chan error, len(parts))
	for _, run := range parts {
		go func() { ended <- run(ctx) }()
	}
	t.Cleanup(func() {
		srv.Stop()
		listener.Close()
		cancel()
		var failed error
		for range parts {
			failed = errors.Join(failed, <-ended)
		}
		if failed != nil {
			t.Error(failed)
		}
	})
	return d
}

// aliceYAML allows alice to see the pods of a namespace.
func aliceYAML(ns string) string {
	return `---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: pods, namespace: ` + ns + `}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: pods, namespace: ` + ns + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: pods}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice@example.com}]
`
}

func TestAUserLogsInSeesWhatTheClusterAllowsAndLogsOut(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	mine, other := place(t, cluster), place(t, cluster)
	apply(t, cluster, podYAML(mine, "mine", "web")+podYAML(other, "unseen-pod", "web")+aliceYAML(mine))
	issuer := startIssuer(t)
	d := startDaemonWithLogins(t, cluster, issuer)
	logins := testissuer.Logins{ClientID: "mirador", RedirectURI: d.url + "/login/callback", KeyID: "k", Ask: true,
		Claims:   map[string]any{"sub": "alice@example.com", "groups": []string{"shop", "on-call"}},
		Lifetime: time.Hour, Deny: "alice is not in the group staff",
		Document: map[string]any{"end_session_endpoint": issuer.URL + "/end"}}
	issuer.SetLogins(logins)

	p := openDaemon(t, d, "#/objects", command(security.SetIgnoreCertificateErrors,
		security.SetIgnoreCertificateErrorsParams{Ignore: true}))
	p.expect("401")
	p.until("it asks", signInOpen)
	p.same("the issuer is named", `document.getElementById('sign-in-begin').textContent`,
		"Log in at "+strings.TrimPrefix(issuer.URL, "https://"))
	p.same("the button has the focus", `document.activeElement.id`, "sign-in-begin")
	p.same("a token can be used, too", `document.getElementById('sign-in-summary').checkVisibility() &&
		!document.getElementById('sign-in-token').checkVisibility()`, "true")
	p.shoot("login")
	walk(p, 10)

	p.press("#sign-in-begin")
	p.until("the page of the issuer", `document.getElementById('continue')`)
	p.press("#continue")
	p.until("the page shows why the issuer refuses",
		signInOpen+` && `+signInSays+`.includes('alice is not in the group staff')`)
	p.shoot("login-refused")

	logins.Deny = ""
	issuer.SetLogins(logins)
	p.press("#sign-in-begin")
	p.until("the page of the issuer", `document.getElementById('continue')`)
	p.press("#continue")
	p.until("the user", userName+` === 'alice@example.com'`)
	p.same("the view is that of before", `location.hash`, "#/objects")
	p.expect("503") // until the cluster is read
	p.expect("403") // while its roles are not read, and for the overview
	p.until("the pod that alice may see, alone", names+`.join() === 'mine'`)
	p.same("the page says that it is a part", `document.getElementById('list-filtered').checkVisibility()`, "true")
	p.same("nothing names another", `document.documentElement.outerHTML.includes('unseen-pod')`, "false")
	p.same("no script can read the cookie", `document.cookie`, "")
	p.same("nothing is kept in the tab", `Object.keys(sessionStorage).length`, "0")
	p.do(chromedp.Click(chromedp.CSS(`#user`)), chromedp.WaitVisible(chromedp.CSS(`#log-out`)))
	p.same("groups", `[...document.querySelectorAll('#account-groups li')].map(g => g.textContent).join()`,
		"oidc:shop,oidc:on-call,system:authenticated")
	p.same("how", `document.getElementById('account-how').textContent`,
		"a login at "+strings.TrimPrefix(issuer.URL, "https://"))
	p.shoot("account")
	p.eval(`(document.documentElement.dataset.theme = 'dark')`, new(any))
	p.shoot("account-dark")
	p.do(command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 360, Height: 740,
		DeviceScaleFactor: 2, Mobile: true}))
	p.same("nothing is wider than a phone", overflow, "")
	p.shoot("phone-account-dark")
	p.do(command(emulation.ClearDeviceMetricsOverride, cdp.Empty{}))

	p.pick("pick-resource", "configmaps.v1")
	p.until("which right is missing", `document.getElementById('list-trouble').textContent.startsWith(
		'You may not see this: configmaps is forbidden: User "alice@example.com" cannot list resource "configmaps"')`)
	p.shoot("forbidden")
	p.eval(`location.hash = '#/'`, new(any))
	p.until("which right the overview needs", `document.querySelector('.waiting').textContent.includes('the role reader')`)
	p.shoot("forbidden-overview")

	p.do(chromedp.Reload())
	p.until("a reload keeps the session", userName+` === 'alice@example.com'`)
	p.do(chromedp.Click(chromedp.CSS(`#user`)), chromedp.WaitVisible(chromedp.CSS(`#log-out`)),
		chromedp.Click(chromedp.CSS(`#log-out`)))
	p.until("logged out, it asks", signInOpen)
	p.same("no user", `document.getElementById('user').hidden`, "true")
	p.same("without a problem", signInSays, "")
	p.same("with a way to log out at the issuer", `document.getElementById('sign-in-end-link').href`, issuer.URL+"/end")
	p.do(chromedp.Reload())
	p.until("it still asks after a reload", signInOpen)
}
