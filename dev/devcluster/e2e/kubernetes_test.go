package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestKubectlVersionNamesTheSameReleaseOnBothSides(t *testing.T) {
	var v struct {
		ClientVersion, ServerVersion struct{ GitVersion string }
	}
	if err := json.Unmarshal([]byte(shared.kubectl(t, "version", "-o", "json")), &v); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join("..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if server := v.ServerVersion.GitVersion; v.ClientVersion.GitVersion != server ||
		!strings.Contains(string(mod), "\tk8s.io/kubernetes "+server+"\n") {
		t.Errorf("client %s, server %s: want both to be what go.mod requires", v.ClientVersion.GitVersion, server)
	}
}

func TestKubectlFindsTheOnlyClusterByItself(t *testing.T) {
	// The test has its own registry, because other tests may run clusters.
	t.Setenv("XDG_RUNTIME_DIR", shortTempDir(t))
	c := up(t, "--no-controllers")
	if out := must(t, "kubectl", "config", "current-context"); out != "devcluster-"+c.name+"\n" {
		t.Errorf("the context is %q", out)
	}
}

func TestDeploymentRunsAndIsDeleted(t *testing.T) {
	shared.kubectl(t, "create", "deployment", "web", "--image=nginx", "--replicas=3")
	shared.kubectl(t, "rollout", "status", "deployment/web", "--timeout=60s")
	out := shared.kubectl(t, "get", "pods", "-l", "app=web", "--no-headers")
	if n := strings.Count(out, "Running"); n != 3 {
		t.Errorf("%d pods are Running, want 3:\n%s", n, out)
	}
	shared.kubectl(t, "delete", "deployment", "web")
	shared.kubectl(t, "wait", "--for=delete", "pod", "-l", "app=web", "--timeout=60s")
}

func TestOrdinaryJobCompletes(t *testing.T) {
	shared.kubectl(t, "create", "job", "once", "--image=busybox")
	shared.kubectl(t, "wait", "--for=condition=complete", "job/once", "--timeout=60s")
	shared.kubectl(t, "delete", "job", "once")
}

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: towers.example.com}
spec:
  group: example.com
  names: {plural: towers, singular: tower, kind: Tower}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func TestCustomResourceIsCreatedAndListed(t *testing.T) {
	apply := func(manifest string) {
		cmd := exec.Command(binary, "kubectl", "--kubeconfig", shared.kubeconfig, "apply", "-f", "-")
		cmd.Stdin = strings.NewReader(manifest)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("apply: %v: %s", err, out)
		}
	}
	apply(crd)
	shared.kubectl(t, "wait", "--for=condition=established", "crd/towers.example.com", "--timeout=30s")
	apply("apiVersion: example.com/v1\nkind: Tower\nmetadata: {name: north, namespace: default}\n")
	if out := shared.kubectl(t, "get", "towers", "-o", "name"); out != "tower.example.com/north\n" {
		t.Errorf("kubectl get towers printed %q", out)
	}
	shared.kubectl(t, "delete", "crd", "towers.example.com")
}

func TestNodesAreReadyAndSpreadOverZones(t *testing.T) {
	out := shared.kubectl(t, "get", "nodes", "-L", "topology.kubernetes.io/zone", "--no-headers")
	if strings.Count(out, " Ready ") != 3 {
		t.Errorf("want 3 nodes that are Ready:\n%s", out)
	}
	for _, want := range []string{"node-0", "node-2", "zone-a", "zone-c"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing:\n%s", want, out)
		}
	}
}

func TestUnknownUsersHaveNoRights(t *testing.T) {
	r := run(t, "kubectl", "--kubeconfig", shared.kubeconfig, "--as", "nobody", "get", "pods")
	if r.status == 0 || !strings.Contains(r.stderr, "forbidden") {
		t.Errorf("a user without rights got: %d %s%s", r.status, r.stdout, r.stderr)
	}
}

func TestAuditLogHasRequests(t *testing.T) {
	shared.kubectl(t, "create", "configmap", "witnessed")
	shared.kubectl(t, "delete", "configmap", "witnessed")
	b, err := os.ReadFile(filepath.Join(shared.data(), "logs", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, `"verb":"create"`) && strings.Contains(line, `"name":"witnessed"`) {
			if strings.Contains(line, "requestObject") {
				t.Errorf("the audit log contains bodies: %s", line)
			}
			return
		}
	}
	t.Error("the audit log does not show the creation")
}

// shortTempDir returns a temporary folder whose path leaves room for sockets.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "dc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
