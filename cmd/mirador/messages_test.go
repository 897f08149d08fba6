package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// saidBy runs a command in this process, as main does.
func saidBy(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	code = runRoot(t.Context(), root, args)
	return code, out.String()
}

func TestMessagesWhenServeCannotStart(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	for name, content := range map[string]string{
		"wrong.yaml": "clusters: hello\n", "malformed.yaml": "a: [\n", "empty.yaml": "",
		"short": "secret-hunter2\n", "key": "no key\n",
		"users.csv": "the-token-of-hunter2,alice,1001,dev\n", "lines": "the-token-of-hunter2\nanother-of-hunter2\n",
		"umlaut":    "the-token-of-hunter2-ä\n",
		"list.yaml": "- a\n", "flags.yaml": "tls-cert-file: tls.crt\n",
		"typo.yaml": "apiVersion: mirador.dev/v1alpha1\nkind: AccessConfiguration\nbindngs: []\n",
		"kubeconfig.yaml": "apiVersion: v1\nkind: Config\ncurrent-context: eu\nclusters: [{name: eu, cluster: {server: " +
			"'http://127.0.0.1:1'}}]\nusers: [{name: eu, user: {}}]\ncontexts: [{name: eu, context: {cluster: eu, user: eu}}]\n",
		"other.yaml": "apiVersion: v1\nkind: Config\ncontexts: [{name: eu, context: {cluster: eu, user: eu}}]\n",
	} {
		check(t, os.WriteFile(name, []byte(content), 0o600))
	}
	check(t, os.Mkdir("clusters", 0o700))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer taken.Close()
	const kube = "; name another with --kubeconfig, or a folder of them with --folder"
	for _, c := range []struct{ args, want string }{
		{"", "read the kubeconfig " + dir + "/none: there is no such file" + kube},
		{"--kubeconfig none.yaml", "read the kubeconfig none.yaml: there is no such file" + kube},
		{"--kubeconfig clusters", "read the kubeconfig clusters: it is a folder, not a file" + kube},
		{"--kubeconfig wrong.yaml",
			"read the kubeconfig wrong.yaml: it is not a kubeconfig: the field clusters is of the wrong type" + kube},
		{"--kubeconfig malformed.yaml", "read the kubeconfig malformed.yaml: it is not a kubeconfig: malformed at line 1" +
			kube},
		{"--kubeconfig list.yaml",
			"read the kubeconfig list.yaml: it is not a kubeconfig: it must be YAML or JSON with the fields clusters, users " +
				"and contexts" + kube},
		{"--kubeconfig empty.yaml",
			"the kubeconfig empty.yaml has no current context; name one with --context, or take all with --all-contexts"},
		{"--kubeconfig kubeconfig.yaml --context us",
			`read the kubeconfig kubeconfig.yaml: the kubeconfig has no context "us"; it has: eu`},
		{"--kubeconfig other.yaml --all-contexts",
			`context "eu" names the cluster "eu", which the kubeconfig does not have`},
		{"--folder none", "--folder none: there is no such folder; make it, and put a kubeconfig into it for each cluster"},
		{"--folder key", "--folder key: it is a file, not a folder; name the folder it is in, or give it with --kubeconfig"},
		{"--folder clusters --listen 8090",
			`listen on "8090": it is not an address; write host:port, such as 127.0.0.1:8090`},
		{"--folder clusters --listen 0.0.0.0:0",
			`which other machines can reach: a way to authenticate users is needed; give a token with --token-file, or one of`},
		{"--folder clusters --listen " + taken.Addr().String(),
			"another program listens there, perhaps another mirador serve; end it, or choose another address with --listen"},
		{"--folder clusters --listen 192.0.2.1:1 --tls-cert key",
			"--tls-cert and --tls-key go together; give both, or none to serve plain http on this machine"},
		{"--folder clusters --tls-cert none --tls-key none",
			"read the certificate of --tls-cert and the key of --tls-key: none: no such file or directory; both are files " +
				"of PEM"},
		{"--folder clusters --tls-cert key --tls-key key", "read the certificate of --tls-cert and the key of --tls-key: "},
		{"--folder clusters --token-file none", "read the token of --token-file: none: no such file or directory"},
		{"--folder clusters --token-file short", "the token in short is shorter than 16 characters; make one with: "},
		{"--folder clusters --token-file users.csv", "the file users.csv of --token-file must have one token on one line, " +
			"of visible ASCII characters without commas; --token-auth-file is for the tokens of several users"},
		{"--folder clusters --token-file lines", "the file lines of --token-file must have one token on one line"},
		{"--folder clusters --token-file umlaut", "the file umlaut of --token-file must have one token on one line"},
		{"--folder clusters --authorization rules",
			"--authorization rules needs the file with the roles; name it with --access-file"},
		{"--folder clusters --audit-log-maxsize 1",
			"--audit-log-maxsize is for an audit log, and there is none; name its file with --audit-log-path"},
		{"--folder clusters --audit-log-maxage 1", "--audit-log-maxage is for an audit log, and there is none"},
		{"--folder clusters --audit-log-maxbackup 1", "--audit-log-maxbackup is for an audit log, and there is none"},
		{"--folder clusters --audit-log-path nope/audit.log",
			"open the audit log nope/audit.log: there is no folder nope; make it, or choose another file"},
		{"--folder clusters --token-auth-file none",
			"authentication: read the static tokens of none: no such file or directory"},
		{"--folder clusters --token-auth-file short", "line 1 has 1 columns and needs 3 or 4; write token,user,uid"},
		{"--folder clusters --authentication-config empty.yaml",
			"use the authentication configuration of empty.yaml: it is empty; begin it with apiVersion: "},
		{"--folder clusters --client-ca-file none", "need TLS; give a certificate to serve with by --tls-cert and --tls-key"},
		{"--folder clusters --requestheader-group-headers X-Group",
			"the headers of a front proxy need the authority of its certificate"},
		{"--folder clusters --api-audiences x", "--api-audiences is for --authentication-token-review; give both or none"},
		{"--kubeconfig kubeconfig.yaml --authentication-token-review us",
			`--authentication-token-review: there is no cluster "us"; the clusters are: eu`},
		{"--folder clusters --log-format xml", `--log-format is text or json, not "xml"`},
		{"--folder clusters --include [",
			`"[" is not a pattern of resources; write it as pods, deployments.apps, *.example.com or *`},
		{"--folder clusters --state malformed.yaml", "read the state file malformed.yaml: "},
		{"--max-objects abc",
			`--max-objects is "abc"; a whole number such as 1000000 is expected; see mirador serve --help`},
		{"--history-age 5",
			`--history-age is "5"; a duration such as 30s, 10m or 1h30m is expected; see mirador serve --help`},
		{"--secrets=maybe", `--secrets is "maybe"; true or false is expected; see mirador serve --help`},
		{"--nope", "unknown flag: --nope; see mirador serve --help"},
		{"--oidc-issuer-url https://x", "unknown flag: --oidc-issuer-url; name the OIDC issuer in the file of " +
			"--authentication-config; see mirador serve --help"},
		{"--oidc-client-id x", "name the client ID as an audience in the file of --authentication-config"},
		{"--tls-cert-file x", "unknown flag: --tls-cert-file; use --tls-cert; see"},
		{"--tls-private-key-file x", "unknown flag: --tls-private-key-file; use --tls-key; see"},
		{"--anonymous-auth=false", "what a role of --access-file gives to the group system:unauthenticated"},
		{"--config flags.yaml", `the config file flags.yaml: there is no flag "tls-cert-file"; use --tls-cert`},
		{"--folder clusters --access-file typo.yaml", "the access file typo.yaml: it is not an AccessConfiguration of " +
			`mirador.dev/v1alpha1: there is no field "bindngs"`},
		{"clusters", `unknown command "clusters" for "mirador serve"; see mirador --help`},
		{"--config none.yaml", "read the config file: none.yaml: no such file or directory; --config names it"},
	} {
		code, said := saidBy(t, append([]string{"serve"}, strings.Fields(c.args)...)...)
		if want := 1 + btoi(!strings.Contains(c.args, taken.Addr().String())); code != want ||
			!strings.HasPrefix(said, "mirador: ") || !strings.Contains(said, c.want) ||
			strings.Count(said, "\n") != 1 || strings.Contains(said, "hunter2") || strings.Contains(said, "unmarshal") {
			t.Errorf("mirador serve %s: exit code %d, and %swant %s", c.args, code, said, c.want)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestStartUpMessageHasWorkingCommands(t *testing.T) {
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8090}
	everywhere := &net.TCPAddr{IP: net.IPv6zero, Port: 8443}
	empty := t.TempDir()
	for name, c := range map[string]struct {
		a    announcement
		want string
	}{
		"plain": {announcement{address: here, clusters: []string{"eu", "us"}}, `
the page:       http://127.0.0.1:8090/
all clusters:   kubectl --server http://127.0.0.1:8090/fleet get pods -A
one of them:    kubectl --server http://127.0.0.1:8090/clusters/eu get pods -A
one of them:    kubectl --server http://127.0.0.1:8090/clusters/us get pods -A
`},
		"a token without TLS, which kubectl would not send": {announcement{address: here, tokenFile: "my token",
			clusters: []string{"eu"}}, `
the page:       http://127.0.0.1:8090/
all clusters:   curl -H "Authorization: Bearer $(cat 'my token')" http://127.0.0.1:8090/fleet/api/v1/pods
one of them:    curl -H "Authorization: Bearer $(cat 'my token')" http://127.0.0.1:8090/clusters/eu/api/v1/pods
kubectl:        not here: it sends no token over plain http; serve with --tls-cert and --tls-key for it
`},
		"tokens of users without TLS": {announcement{address: here, users: tokenCredentials, clusters: []string{"eu"}}, `
the page:       http://127.0.0.1:8090/
all clusters:   curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8090/fleet/api/v1/pods
one of them:    curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8090/clusters/eu/api/v1/pods
credentials:    these commands need the token of a user in the variable TOKEN
kubectl:        not here: it sends no token over plain http; serve with --tls-cert and --tls-key for it
`},
		"tokens of users with TLS": {announcement{address: here, tlsCert: "tls.crt", users: tokenCredentials,
			folder: empty}, `
the page:       https://127.0.0.1:8090/
all clusters:   kubectl --server https://127.0.0.1:8090/fleet --certificate-authority tls.crt --token "$TOKEN" ` +
			`get pods -A
credentials:    these commands need the token of a user in the variable TOKEN
no clusters yet: put a kubeconfig into ` + empty + ` and it joins within seconds, or run ` +
			`mirador clusters join NAME --kubeconfig FILE --server https://127.0.0.1:8090 --token-file FILE ` +
			`--certificate-authority tls.crt
`},
		"certificates of users": {announcement{address: here, tlsCert: "tls.crt", users: certificateCredentials,
			clusters: []string{"eu"}}, `
the page:       https://127.0.0.1:8090/
all clusters:   kubectl --server https://127.0.0.1:8090/fleet --certificate-authority tls.crt ` +
			`--client-certificate FILE --client-key FILE get pods -A
one of them:    kubectl --server https://127.0.0.1:8090/clusters/eu --certificate-authority tls.crt ` +
			`--client-certificate FILE --client-key FILE get pods -A
credentials:    these commands need the certificate and the key of a user in place of FILE
`},
		"a front proxy": {announcement{address: here, tlsCert: "tls.crt", users: proxyCredentials,
			clusters: []string{"eu"}}, `
the page:       https://127.0.0.1:8090/
all clusters:   kubectl --server https://127.0.0.1:8090/fleet --certificate-authority tls.crt get pods -A
one of them:    kubectl --server https://127.0.0.1:8090/clusters/eu --certificate-authority tls.crt get pods -A
credentials:    users come through the front proxy; name its address in place of this one
`},
		"other machines": {announcement{address: everywhere, hosts: []string{"mirror.test"}, tlsCert: "tls.crt",
			tokenFile: "token", clusters: []string{"eu"}}, `
the page:       https://mirror.test:8443/
all clusters:   kubectl --server https://mirror.test:8443/fleet ` + `--certificate-authority tls.crt ` +
			`--token "$(cat token)" get pods -A
one of them:    kubectl --server https://mirror.test:8443/clusters/eu ` + `--certificate-authority tls.crt ` +
			`--token "$(cat token)" get pods -A
`},
		"TLS alone, on every address": {announcement{address: everywhere, tlsCert: "tls.crt", clusters: []string{"eu"}}, `
the page:       https://127.0.0.1:8443/
all clusters:   kubectl --server https://127.0.0.1:8443/fleet --certificate-authority tls.crt get pods -A
one of them:    kubectl --server https://127.0.0.1:8443/clusters/eu --certificate-authority tls.crt get pods -A
`},
		"an empty folder": {announcement{address: here, folder: empty}, `
the page:       http://127.0.0.1:8090/
all clusters:   kubectl --server http://127.0.0.1:8090/fleet get pods -A
no clusters yet: put a kubeconfig into ` + empty + ` and it joins within seconds, or run ` +
			`mirador clusters join NAME --kubeconfig FILE --server http://127.0.0.1:8090
`},
		"many": {announcement{address: here, clusters: []string{"a", "b", "c", "d", "e", "f", "g"}}, `
the page:       http://127.0.0.1:8090/
all clusters:   kubectl --server http://127.0.0.1:8090/fleet get pods -A
one of them:    kubectl --server http://127.0.0.1:8090/clusters/a get pods -A
one of them:    kubectl --server http://127.0.0.1:8090/clusters/b get pods -A
one of them:    kubectl --server http://127.0.0.1:8090/clusters/c get pods -A
one of them:    kubectl --server http://127.0.0.1:8090/clusters/d get pods -A
one of them:    kubectl --server http://127.0.0.1:8090/clusters/e get pods -A
                and 2 more: mirador clusters shows all
`},
	} {
		var out bytes.Buffer
		c.a.write(&out)
		if out.String() != c.want[1:] {
			t.Errorf("%s:\n%swant:\n%s", name, out.String(), c.want[1:])
		}
	}
}

func TestEachAuthenticatorHasItsKindOfCredentials(t *testing.T) {
	for args, want := range map[string]userCredentials{
		"": noCredentials, "--token-auth-file x": tokenCredentials, "--authentication-config x": tokenCredentials,
		"--authentication-token-review eu": tokenCredentials, "--client-ca-file x": certificateCredentials,
		"--requestheader-client-ca-file x":                    proxyCredentials,
		"--client-ca-file x --token-auth-file x":              tokenCredentials,
		"--requestheader-client-ca-file x --client-ca-file x": certificateCredentials,
	} {
		var f authenticationFlags
		flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		f.add(flags)
		check(t, flags.Parse(strings.Fields(args)))
		if got := f.credentials(); got != want {
			t.Errorf("%q: %d, want %d", args, got, want)
		}
	}
}

// An empty folder is not an error: the daemon starts and prints how a cluster joins.
func TestServeWithAnEmptyFolderPrintsHowToJoin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	root := newRoot()
	out := &firstWrite{when: "no clusters yet: put a kubeconfig into ", then: cancel}
	root.SetOut(out)
	root.SetErr(out)
	if code := runRoot(ctx, root, []string{"serve", "--folder", t.TempDir(), "--listen", "127.0.0.1:0"}); code != 0 ||
		!out.seen {
		t.Errorf("exit code %d, and\n%s", code, out.b.String())
	}
}

// firstWrite calls a function at the first write.
type firstWrite struct {
	b    bytes.Buffer
	when string
	then func()
	seen bool
}

func (f *firstWrite) Write(p []byte) (int, error) {
	f.b.Write(p)
	if !f.seen && strings.Contains(f.b.String(), f.when) {
		f.seen = true
		f.then()
	}
	return len(p), nil
}

// startServe runs serve with an empty folder until end is called, which returns its exit code. at is the address that
// it prints, and out what it has printed.
func startServe(t *testing.T, args ...string) (at string, out *firstWrite, end func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	out = &firstWrite{when: "no clusters yet", then: func() { close(started) }}
	root := newRoot()
	root.SetOut(out)
	root.SetErr(out)
	ended := make(chan int)
	go func() { ended <- runRoot(ctx, root, append([]string{"serve", "--folder", t.TempDir()}, args...)) }()
	select {
	case <-started:
	case code := <-ended:
		t.Fatalf("exit code %d, and\n%s", code, out.b.String())
	}
	return regexp.MustCompile(`https?://[^/]+`).FindString(out.b.String()), out, func() int {
		cancel()
		return <-ended
	}
}
