package chart

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// patience is how long a test waits for something that should take seconds.
const patience = 2 * time.Minute

// podIP is the address of the pod that the daemon would run in.
const podIP = "10.1.2.3"

// installation is a cluster with the objects of the chart, and a daemon that runs as its pod would: with the pod's
// arguments and files, and with a token of the pod's ServiceAccount.
type installation struct {
	cluster *testcluster.Cluster
	client  kubernetes.Interface
	objects objects
	url     string
	http    *http.Client
}

func TestOnACluster(t *testing.T) {
	in := install(t)
	t.Run("the restricted Pod Security Standard admits the pod", in.admitsPod)
	in.serve(t)
	t.Run("the daemon reads what it must", in.readsWhatItMust)
	t.Run("its ServiceAccount may do nothing more", in.mayDoNothingMore)
	t.Run("probes and Prometheus reach the pod by its address", in.answersByAddress)
	t.Run("a user sees what the cluster allows", in.showsWhatTheClusterAllows)
}

// install creates the objects of the chart with its defaults, in a namespace that enforces the restricted standard. Its
// user for Prometheus may also see the status of clusters. The objects for the Prometheus operator are left out: the
// cluster does not have it.
func install(t *testing.T) *installation {
	t.Helper()
	in := &installation{cluster: testcluster.Start(t, testcluster.WithoutControllers()), objects: renderObjects(t, values{
		"metrics": monitoring(), "access": values{"bindings": []any{
			values{"role": "reader", "users": []any{"system:serviceaccount:monitoring:prometheus-k8s"}}}}})}
	client, err := kubernetes.NewForConfig(in.cluster.Config())
	check(t, err)
	in.client = client
	in.apply(t, `{apiVersion: v1, kind: Namespace, metadata: {name: mirador, labels: {
		pod-security.kubernetes.io/enforce: restricted}}}`)
	in.apply(t, `{apiVersion: v1, kind: Namespace, metadata: {name: monitoring}}`)
	in.apply(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: prometheus-k8s, namespace: monitoring}}`)
	for _, o := range in.objects {
		if o.GroupVersionKind().Group == "monitoring.coreos.com" {
			continue
		}
		b, err := yaml.Marshal(o.Object)
		check(t, err)
		in.apply(t, string(b))
	}
	return in
}

// apply creates an object. Fields that the API server does not know are errors.
func (in *installation) apply(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "object.yaml")
	check(t, os.WriteFile(file, []byte(text), 0o600))
	in.cluster.Kubectl(t, "apply", "--server-side", "--validate=strict", "-f", file)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (in *installation) admitsPod(t *testing.T) {
	template := in.objects.pod(t)
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name = "mirador-0"
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-mirador-0"}}})
	if _, err := in.client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	pod.Name, pod.Spec.HostPID = "other", true
	if _, err := in.client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err == nil ||
		!strings.Contains(err.Error(), "violates PodSecurity") {
		t.Errorf("the namespace does not enforce the standard: %v", err)
	}
}

// token returns a token of a ServiceAccount.
func (in *installation) token(t *testing.T, namespace, name string) string {
	t.Helper()
	return strings.TrimSpace(in.cluster.Kubectl(t, "create", "token", name, "-n", namespace))
}

// serve starts the daemon of the pod. Paths of the pod are replaced by those of a folder.
func (in *installation) serve(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	config := in.cluster.Config()
	replace := strings.NewReplacer("/etc/mirador/", folder+"/", "/data/", folder+"/data/", "listen: :8443",
		"listen: 127.0.0.1:0")
	write := func(name string, content []byte) {
		t.Helper()
		path := filepath.Join(folder, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		check(t, os.WriteFile(path, content, 0o600))
	}
	for _, name := range []string{"config.yaml", "access.yaml"} {
		write("config/"+name, []byte(replace.Replace(in.objects.configFile(t, name))))
	}
	secret := map[string][]byte{}
	data, _, err := unstructured.NestedStringMap(in.objects.one(t, "Secret").Object, "data")
	check(t, err)
	for name, text := range data {
		secret[name], err = base64.StdEncoding.DecodeString(text)
		check(t, err)
		write("tls/"+name, secret[name])
	}
	authority := config.CAData
	if len(authority) == 0 {
		authority, err = os.ReadFile(config.CAFile)
		check(t, err)
	}
	write("serviceaccount/ca.crt", authority)
	write("serviceaccount/token", []byte(in.token(t, namespace, "mirador")))
	write("serviceaccount/namespace", []byte(namespace))
	server, err := url.Parse(config.Host)
	check(t, err)
	check(t, os.Mkdir(filepath.Join(folder, "data"), 0o700))

	container := in.objects.pod(t).Spec.Containers[0]
	var args []string
	for _, a := range container.Args {
		args = append(args, strings.ReplaceAll(replace.Replace(a), "$(POD_IPS)", podIP+",fd00::7"))
	}
	cmd := inPod(filepath.Join(folder, "serviceaccount"), root+"/bin/mirador", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "KUBERNETES_SERVICE_HOST=" + server.Hostname(),
		"KUBERNETES_SERVICE_PORT=" + server.Port()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the daemon ended with %v:\n%s", err, &log)
		}
	})
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	in.url = strings.TrimSuffix(strings.TrimSpace(strings.TrimPrefix(first, "the page:")), "/")
	if err != nil || !strings.HasPrefix(in.url, "https://127.0.0.1:") {
		t.Fatalf("the daemon printed %q (%v)", first, err)
	}
	go io.Copy(io.Discard, lines)
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(secret["ca.crt"]) {
		t.Fatal("ca.crt of the Secret is no certificate")
	}
	in.http = &http.Client{Timeout: patience, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(in.http.CloseIdleConnections)
}

// inPod returns a command that finds a folder where pods have the credentials of their service account: it has a /run
// of its own.
func inPod(account, program string, args ...string) *exec.Cmd {
	const mount = `mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io &&
		ln -s "$0" /run/secrets/kubernetes.io/serviceaccount && exec "$@"`
	own := []string{"--mount"}
	if os.Geteuid() != 0 {
		own = append(own, "--map-root-user")
	}
	return exec.Command("unshare", slices.Concat(own, []string{"sh", "-c", mount, account, program}, args)...)
}

// get sends a request to the daemon. host is the name that the client uses for it.
func (in *installation) get(t *testing.T, path, token, host string) (code int, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, in.url+path, nil)
	check(t, err)
	req.Host = host
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := in.http.Do(req)
	check(t, err)
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	check(t, err)
	return resp.StatusCode, body
}

const own = "localhost"

// resource is a resource of the cluster.
type resource struct {
	group, version, name string
	namespaced           bool
}

func (r resource) String() string { return strings.TrimSuffix(r.name+"."+r.group, ".") }

// served returns what the cluster can list and watch, in the preferred version of each group.
func (in *installation) served(t *testing.T) (all []resource) {
	t.Helper()
	lists, err := in.client.Discovery().ServerPreferredResources()
	check(t, err)
	for _, l := range lists {
		group, version, ok := strings.Cut(l.GroupVersion, "/")
		if !ok {
			group, version = "", l.GroupVersion
		}
		for _, r := range l.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") {
				all = append(all, resource{group, version, r.Name, r.Namespaced})
			}
		}
	}
	if len(all) < 40 {
		t.Fatalf("the cluster serves only %v", all)
	}
	return all
}

// leftOut is what the chart does not mirror of Kubernetes' own resources.
var leftOut = []string{"secrets", "leases.coordination.k8s.io", "events.events.k8s.io"}

func (in *installation) readsWhatItMust(t *testing.T) {
	var want []string
	for _, r := range in.served(t) {
		if !slices.Contains(leftOut, r.String()) && r.group != "coordination.k8s.io" {
			want = append(want, r.String())
		}
	}
	slices.Sort(want)
	token := in.token(t, "monitoring", "prometheus-k8s")
	type report struct {
		Clusters []struct {
			Name, State, Authorization string
			Resources                  []struct {
				Group, Resource, Error string
				Synced                 bool
			}
		}
	}
	var got, waiting []string
	var body []byte
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		code := 0
		code, body = in.get(t, "/clusters", token, own)
		var r report
		if err := json.Unmarshal(body, &r); err != nil || code != http.StatusOK || len(r.Clusters) != 1 {
			t.Fatalf("/clusters is %d %s (%v)", code, body, err)
		}
		got, waiting = nil, nil
		for _, of := range r.Clusters[0].Resources {
			name := resource{group: of.Group, name: of.Resource}.String()
			got = append(got, name)
			if !of.Synced || of.Error != "" {
				waiting = append(waiting, name+": "+of.Error)
			}
		}
		if len(got) > 0 && len(waiting) == 0 && r.Clusters[0].Authorization == "rbac" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not read: %q\n%s", waiting, body)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("mirrored are\n%q\nwant\n%q", got, want)
	}
	if code, body := in.get(t, "/readyz", "", own); code != http.StatusOK {
		t.Errorf("/readyz is %d %s", code, body)
	}
}

func (in *installation) mayDoNothingMore(t *testing.T) {
	may := func(verb string, r resource, subresource, name string) bool {
		t.Helper()
		review, err := in.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:   "system:serviceaccount:mirador:mirador",
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:mirador", "system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: r.group, Version: r.version,
					Resource: r.name, Subresource: subresource, Name: name}}}, metav1.CreateOptions{})
		check(t, err)
		return review.Status.Allowed
	}
	for _, r := range in.served(t) {
		mirrored := !slices.Contains(leftOut, r.String()) && r.group != "coordination.k8s.io"
		for _, verb := range []string{"list", "watch", "get", "create", "update", "patch", "delete", "deletecollection",
			"impersonate", "bind", "escalate"} {
			want := mirrored && (verb == "list" || verb == "watch")
			if got := may(verb, r, "", ""); got != want {
				t.Errorf("may %s %s: %v, want %v", verb, r, got, want)
			}
		}
	}
	for _, c := range []struct {
		verb, group, name, subresource, object string
		want                                   bool
	}{
		{"get", "", "namespaces", "", "kube-system", true},
		{"get", "", "namespaces", "", "default", false},
		{"create", "authentication.k8s.io", "tokenreviews", "", "", true},
		{"create", "authorization.k8s.io", "subjectaccessreviews", "", "", false},
		{"create", "", "serviceaccounts", "token", "mirador", false},
		{"get", "", "pods", "log", "", false},
		{"create", "", "pods", "exec", "", false},
		{"get", "", "nodes", "proxy", "", false},
	} {
		if got := may(c.verb, resource{group: c.group, name: c.name}, c.subresource, c.object); got != c.want {
			t.Errorf("may %s %s/%s %s: %v, want %v", c.verb, c.name, c.subresource, c.object, got, c.want)
		}
	}
	for _, args := range [][]string{{"list", "secrets"}, {"get", "secrets"}, {"watch", "secrets"}} {
		out := in.canI(t, args...)
		if out != "no" {
			t.Errorf("kubectl auth can-i %q: %s", args, out)
		}
	}
}

// canI asks as the ServiceAccount itself, with its token.
func (in *installation) canI(t *testing.T, args ...string) string {
	t.Helper()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: args[0], Resource: args[1]}}}
	config := in.cluster.Config()
	config.CertData, config.KeyData, config.CertFile, config.KeyFile = nil, nil, "", ""
	config.BearerToken = in.token(t, namespace, "mirador")
	client, err := kubernetes.NewForConfig(config)
	check(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	review, err = client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	check(t, err)
	if review.Status.Allowed {
		return "yes"
	}
	return "no"
}

func (in *installation) answersByAddress(t *testing.T) {
	container := in.objects.pod(t).Spec.Containers[0]
	for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
		if code, body := in.get(t, probe.HTTPGet.Path, "", podIP+":8443"); code != http.StatusOK {
			t.Errorf("the probe of %s is %d %s", probe.HTTPGet.Path, code, body)
		}
	}
	prometheus, other := in.token(t, "monitoring", "prometheus-k8s"), in.token(t, namespace, "mirador")
	for _, host := range []string{podIP + ":8443", "[fd00::7]:8443", "mirador.mirador.svc",
		"mirador.mirador.svc.cluster.local"} {
		code, body := in.get(t, "/metrics", prometheus, host)
		if code != http.StatusOK || !strings.Contains(string(body), "\nmirador_cluster_resources_synced{") {
			t.Errorf("/metrics of %s is %d %.200s", host, code, body)
		}
	}
	if code, _ := in.get(t, "/metrics", other, own); code != http.StatusForbidden {
		t.Errorf("/metrics is %d for another user, want 403", code)
	}
	if code, _ := in.get(t, "/metrics", prometheus, "attacker.example.com"); code != http.StatusForbidden {
		t.Errorf("/metrics is %d for another host name, want 403", code)
	}
	if code, _ := in.get(t, "/fleet/api/v1/pods", "", own); code != http.StatusUnauthorized {
		t.Errorf("/fleet is %d without a token, want 401", code)
	}
}

func (in *installation) showsWhatTheClusterAllows(t *testing.T) {
	in.apply(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: jane, namespace: default}}`)
	in.apply(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: jane, namespace: mirador},
		rules: [{apiGroups: [""], resources: [services, secrets], verbs: [list]}]}`)
	in.apply(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: jane, namespace: mirador},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: jane},
		subjects: [{kind: ServiceAccount, name: jane, namespace: default}]}`)
	jane := in.token(t, "default", "jane")
	var body []byte
	code := 0
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if code, body = in.get(t, "/clusters/home/api/v1/namespaces/mirador/services", jane, own); code == http.StatusOK {
			break // the binding has arrived in the mirror
		}
	}
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal(body, &list); err != nil || len(list.Items) != 1 || list.Items[0].Metadata.Name != "mirador" {
		t.Errorf("services are %d %s (%v)", code, body, err)
	}
	for _, path := range []string{"/clusters/home/api/v1/nodes", "/clusters/home/api/v1/namespaces/default/services"} {
		if code, body := in.get(t, path, jane, own); code != http.StatusForbidden {
			t.Errorf("%s is %d %s, want 403", path, code, body)
		}
	}
	if code, body := in.get(t, "/clusters/home/api/v1/namespaces/mirador/secrets", jane, own); code == http.StatusOK {
		t.Error("secrets are served: ", fmt.Sprintf("%.300s", body))
	}
}
