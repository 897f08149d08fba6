package cli

import (
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/informertest"
)

// unusedAddress returns an address without a listener.
func unusedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// kubeconfigOf returns a kubeconfig with a context for each server. The first is the current one.
func kubeconfigOf(servers ...[2]string) string {
	b := "apiVersion: v1\nkind: Config\ncurrent-context: " + servers[0][0] + "\nclusters:\n"
	for _, s := range servers {
		b += "- {name: " + s[0] + ", cluster: {server: '" + s[1] + "'}}\n"
	}
	b += "contexts:\n"
	for _, s := range servers {
		b += "- {name: " + s[0] + ", context: {cluster: " + s[0] + "}}\n"
	}
	return b
}

func TestMessagesForWrongUsage(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	dead := unusedAddress(t)
	t.Setenv("MIRADOR_SERVER", "http://"+dead)
	t.Setenv("MIRADOR_TOKEN_FILE", "")
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	for name, content := range map[string]string{
		"wrong.yaml": "clusters: hello\n", "malformed.yaml": "a: [\n", "empty.yaml": "", "text": "s3cr3t\n",
		"kubeconfig.yaml": kubeconfigOf([2]string{"eu", "http://" + dead}),
	} {
		write(t, filepath.Join(dir, name), content)
	}
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"get", exitUsage,
			"mirador get takes a resource and any number of names, and got 0 arguments; see mirador get --help"},
		{"get pods --nope", exitUsage, "unknown flag: --nope; see mirador get --help"},
		{"get pods --limit many", exitUsage,
			`--limit is "many"; a whole number such as 1000000 is expected; see mirador get --help`},
		{"get pods", exitUnreachable, "; is the daemon up? start one with mirador serve, or name it with --server"},
		{"get pods --server mirror:8090", exitUsage,
			"the server's URL is not usable; write it as http://127.0.0.1:8090 or https://host:port"},
		{"get pods --server http://127.0.0.1:8090/fleet", exitUsage, "leave /fleet out of the server's URL; "},
		{"get pods --server http://127.0.0.1:8090/clusters/eu/", exitUsage, "leave /clusters/eu out of the server's URL; "},
		{"get pods --kubeconfig none.yaml", exitUsage,
			"read the kubeconfig none.yaml: there is no such file; name another with --kubeconfig"},
		{"get pods --kubeconfig folder", exitUsage,
			"read the kubeconfig folder: it is a folder, not a file; name another with --kubeconfig"},
		{"get pods --kubeconfig wrong.yaml", exitUsage,
			"read the kubeconfig wrong.yaml: it is not a kubeconfig: the field clusters is of the wrong type; name another " +
				"with --kubeconfig"},
		{"get pods --kubeconfig malformed.yaml", exitUsage,
			"read the kubeconfig malformed.yaml: it is not a kubeconfig: malformed at line 1; name another with --kubeconfig"},
		{"get pods --kubeconfig empty.yaml", exitUsage,
			"the kubeconfig empty.yaml has no current context; name one with --context"},
		{"get pods --kubeconfig kubeconfig.yaml --context us", exitUsage, `the kubeconfig has no context "us"; it has: eu`},
		{"get pods --kubeconfig kubeconfig.yaml", exitUnreachable, "; is the cluster up, and the context the right one?"},
		{"get pods -o xml", exitUsage,
			`--output is json, yaml, wide, name, jsonpath=TEMPLATE, go-template=TEMPLATE or ` +
				`custom-columns=HEAD:PATH,…, not "xml"`},
		{"get pods -o jsonpath={.a", exitUsage,
			"the template of jsonpath is not usable: unclosed action; write it as jsonpath='{.items[*].metadata.name}'"},
		{"get pods -o go-template={{", exitUsage, "write it as go-template='{{range .items}}{{.metadata.name}} {{end}}'"},
		{"get pods -o custom-columns=A", exitUsage,
			`"A" is not a column; write custom-columns as in NAME:.metadata.name,NODE:.spec.nodeName`},
		{"get pods -o jsonpath-file=none", exitUsage,
			"read the template of --output jsonpath-file: open none: no such file or directory"},
		{"get pods -l a=(b", exitUsage,
			`--selector "a=(b" is wrong: unable to parse requirement: found '(', expected: identifier; ` +
				`write it as app=web,tier!=db`},
		{"count pods --field-selector x", exitUsage,
			`--field-selector "x" is wrong: invalid selector: 'x'; can't understand 'x'; write it as status.phase=Running`},
		{"get pods --token-file none", exitUsage, "read the token: open none: no such file or directory"},
		{"get pods --token-file wrong.yaml", exitUsage,
			"the file wrong.yaml of --token-file must have one token on one line, of visible ASCII characters"},
		{"get pods --token-file text --server http://mirror.example.com", exitUsage,
			"a token would be readable on its way to mirror.example.com; use https"},
		{"get pods --certificate-authority text", exitUsage, "text has no certificate in it; give a file of PEM"},
		{"clusters", exitUnreachable, "no daemon answers at " + dead +
			"; start one with mirador serve, or name it with --server"},
		{"clusters join eu", exitUsage, "--kubeconfig is missing; name the file that leads to the cluster"},
		{"clusters join eu --kubeconfig none.yaml", exitUsage,
			"read the kubeconfig none.yaml: there is no such file; name another with --kubeconfig"},
		{"clusters join eu --kubeconfig wrong.yaml", exitUsage,
			"it is not a kubeconfig: the field clusters is of the wrong type"},
		{"clusters join eu --kubeconfig kubeconfig.yaml --context us", exitUsage,
			`has no usable context "us"; kubectl config get-contexts shows what it has`},
		{"apply", exitUsage, "--filename is missing; name a file, a folder, or - for standard input"},
		{"apply -f text --kubeconfig none.yaml", exitUsage,
			"read the kubeconfig none.yaml: there is no such file; name another with --kubeconfig"},
		{"apply -f text --kubeconfig kubeconfig.yaml", exitUnreachable,
			"; is the cluster up, and the context the right one?"},
		{"delete pods", exitUsage, "delete takes names after the resource, or -l, or --all for all of it"},
		{"patch deploy web -p {", exitUsage, "the patch is neither JSON nor YAML: malformed at line 1"},
		{"watch pods --server http://" + dead, exitUnreachable,
			"is the daemon up? start one with mirador serve, or name it with --server"},
	} {
		s := run(t, "", strings.Fields(c.args)...)
		if s.code != c.code || s.err == nil || !strings.Contains(s.err.Error(), c.want) ||
			strings.Contains(s.err.Error(), "\n") ||
			strings.Contains(s.err.Error(), "s3cr3t") || strings.Contains(s.err.Error(), "unmarshal") {
			t.Errorf("mirador %s: exit code %d, and %v; want %d, and %s", c.args, s.code, s.err, c.code, c.want)
		}
	}
}

func TestMessagesForCertificatesThatAreNotAccepted(t *testing.T) {
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	web.StartTLS()
	defer web.Close()
	authority := write(t, filepath.Join(t.TempDir(), "ca.crt"),
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})))
	other := strings.Replace(web.URL, "127.0.0.1", "localhost", 1)
	const unknown = "authority of the daemon's certificate with --certificate-authority"
	for args, want := range map[string]string{
		"status --server " + web.URL:                                         unknown,
		"get pods --server " + web.URL:                                       unknown,
		"clusters --server " + web.URL:                                       unknown,
		"status --certificate-authority " + authority + " --server " + other: "as its certificate does",
	} {
		s := fails(t, exitUnreachable, want, strings.Fields(args)...)
		if s.err != nil && strings.Contains(s.err.Error(), "is the daemon up") {
			t.Errorf("mirador %s: %v", args, s.err)
		}
	}
}

func TestMessagesForAURLWithTheWrongScheme(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	web.StartTLS()
	defer web.Close()
	for _, args := range []string{"clusters", "status", "get pods", "get pods --cluster eu"} {
		fails(t, exitUnreachable, "write the server's URL with http://",
			strings.Fields(args+" --server "+strings.Replace(plain.URL, "http:", "https:", 1))...)
		fails(t, exitUnreachable, "write the server's URL with https://",
			strings.Fields(args+" --server "+strings.Replace(web.URL, "https:", "http:", 1))...)
	}
}

func TestStatusFailsIfAClusterIsUnreachable(t *testing.T) {
	s := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		// the test sees it
		json.NewEncoder(w).Encode(server.Report{Clusters: []server.ClusterReport{{Name: "dead", State: "unreachable"},
			{Name: "eu", State: "ready"}}})
	})
	defer s.close()
	for cluster, code := range map[string]int{"dead": exitUnreachable, "eu": 0} {
		var out strings.Builder
		err := (&statusCommand{clusters: []string{cluster}}).once(t.Context(), s, &out)
		if ExitCode(err) != code || !strings.Contains(out.String(), cluster+" ") {
			t.Errorf("%s: exit code %d (%v), want %d:\n%s", cluster, ExitCode(err), err, code, out.String())
		}
	}
}

func TestMessagesForAnswersOfADaemon(t *testing.T) {
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/clusters/dead":
			// the test sees it
			json.NewEncoder(w).Encode(server.ClusterReport{Name: "dead", State: "unreachable",
				Error: "the connection was refused"})
		case "/clusters/none":
			refuse(w, apierrors.NewNotFound(schema.GroupResource{Resource: "clusters"}, "none"))
		default:
			refuse(w, apierrors.NewUnauthorized("a valid token is needed"))
		}
	})
	defer s.close()
	for prefix, c := range map[string]struct {
		code int
		want string
	}{
		"/clusters/dead": {exitUnreachable, `cluster "dead" is unreachable: the connection was refused`},
		"/clusters/none": {exitNotFound, `there is no cluster "none"; mirador clusters shows what there is`},
		"/clusters/eu": {exitFailed,
			"the daemon wants a token, and this one is none or the wrong one; name its file with --token-file"},
		"/fleet": {exitFailed,
			"the daemon wants a token, and this one is none or the wrong one; name its file with --token-file"},
	} {
		if _, err := s.catalog(t.Context(), prefix); ExitCode(err) != c.code || err == nil ||
			!strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: exit code %d, and %v; want %d, and %s", prefix, ExitCode(err), err, c.code, c.want)
		}
	}
}

// A cluster that is down, or does not answer, delays the others only by seconds and is named in a warning.
func TestDeadClusterIsOmittedWithAWarning(t *testing.T) {
	before, silence := faultTime, silentTime
	defer func() { faultTime, silentTime = before, silence }()
	faultTime, silentTime = 100*time.Millisecond, 200*time.Millisecond
	t.Setenv("MIRADOR_SERVER", "")
	alive := informertest.NewServer()
	if _, err := alive.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}); err != nil {
		t.Fatal(err)
	}
	cfg, stop := informertest.Serve(alive)
	defer stop()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it never accepts a connection
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, server := range map[string]string{"dead": "http://" + unusedAddress(t),
		"a-silent": "http://" + silent.Addr().String()} {
		kube := write(t, filepath.Join(t.TempDir(), "config"),
			kubeconfigOf([2]string{name, server}, [2]string{"eu", cfg.Host}))
		began := time.Now()
		s := run(t, "", "get", "pods", "-A", "--kubeconfig", kube, "--context", "eu", "--context", name)
		if s.err != nil || !strings.Contains(s.out, "web") || !strings.Contains(s.errs, "warning: cluster ") ||
			!strings.Contains(s.errs, name) || time.Since(began) > 15*time.Second {
			t.Errorf("%s after %s: %+v", name, time.Since(began), s)
		}
	}
}
