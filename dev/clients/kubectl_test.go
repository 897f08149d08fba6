package clients

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// kubectls are the tested versions of kubectl: the oldest that compiles, and that of the clusters.
var kubectls = map[string][]string{
	"1.28":    {program("kubectl128")},
	"current": {program("devcluster"), "kubectl"},
}

// kubectl runs kubectl, and returns its exit code and output. Any goroutine may call it.
func kubectl(t *testing.T, command []string, kubeconfig, args string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	words := append(command[1:len(command):len(command)], strings.Fields(args)...)
	cmd := exec.CommandContext(ctx, command[0], words...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Errorf("kubectl %s: %v", args, err)
		return -1, err.Error()
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

var (
	ages    = regexp.MustCompile(`\b\d+[dhms](\d+[hms])*\b`)
	spaces  = regexp.MustCompile(` +`)
	servers = regexp.MustCompile(`https://[0-9.:]+(/clusters/eu|/fleet)?`)
	// renewals are the times of a node's lease and conditions, which change all the time.
	renewals = regexp.MustCompile(`(?m)(RenewTime: ).*$`)
)

// comparable replaces what differs between two runs of the same command: ages, the width of columns and the server.
func comparable(out string) string {
	for _, r := range []*regexp.Regexp{ages, servers, renewals} {
		out = r.ReplaceAllString(out, "X")
	}
	return spaces.ReplaceAllString(out, " ")
}

// These commands print the same of a cluster and of its mirror.
var sameOutput = []string{
	"get pods -A", "get pods -A -o wide", "get nodes -o wide", "get all -A", "get ns", "get events -A",
	"get deploy,rs,sts,svc,cm,sa,ep,endpointslices -n web", "get roles,rolebindings,clusterroles -A",
	"get deploy -n web shop -o yaml", "get pods -n web -o json", "get pods -n web --sort-by=.status.startTime",
	"get pods -A -l app=shop --show-labels", "get pods -A --field-selector=status.phase=Running",
	"get deploy -n web shop --subresource=status -o wide", "get pods -n web --chunk-size=1",
	"describe pods -n web", "describe deploy -n web", "describe sts -n db", "describe svc -n web shop",
	"describe node node-1", "describe ns web", "describe cm -n web settings", "describe rolebinding -n web pods",
	"api-resources --verbs=get,list,watch", "api-resources --verbs=get,list,watch --namespaced=false",
	"explain pods", "explain deployment.spec.template --recursive", "explain pods.spec --output=plaintext-openapiv2",
	"events -n web", "rollout status -n web deploy/shop", "rollout history -n web deploy/shop",
	"wait -n web --for=condition=Available deploy/shop --timeout=10s", "get -f testdata/objects.yaml",
	"auth can-i list pods -A", "auth can-i get deployments.apps/shop -n web", "version", "cluster-info", "top pods -n web",
	"get nonsense", "get pod nonsense -n web", "get pods -n nonsense", "explain nonsense", "explain pods.nonsense",
	"get pods -A --field-selector=nonsense=1", "get pods -A -l a+b",
}

// These commands of jane print the same of a cluster and of its mirror.
var sameOutputOfJane = []string{
	"get pods -n web", "get pods -A", "get pods -n db", "get deploy -n web", "get ns", "get nodes", "get all -n web",
	"describe pods -n web", "auth can-i list pods -n web", "auth can-i list pods -A",
	"auth can-i --list -n web", "api-resources --verbs=get,list,watch", "explain pods", "get pod nonsense -n web",
}

func kubectlPrintsTheSameOfTheMirrorAndTheCluster(t *testing.T, w *world) {
	for version, command := range kubectls {
		for user, commands := range map[string][]string{admin: sameOutput, jane: sameOutputOfJane} {
			real, ours := w.realKubeconfig(t, user), w.kubeconfig(t, user, "/clusters/eu")
			for _, args := range commands {
				if wantCode, want, gotCode, got := w.compare(t, command, real, ours, args); wantCode != gotCode ||
					comparable(want) != comparable(got) {
					t.Errorf("kubectl %s of %s: %s\ncluster, exit code %d:\n%s\nmirror, exit code %d:\n%s", version, user, args,
						wantCode, want, gotCode, got)
				}
			}
		}
	}
}

// compare runs a command on the cluster and on the mirror, up to three times, because the mirror may be late.
func (w *world) compare(t *testing.T, command []string, real, ours, args string) (wantCode int, want string,
	gotCode int, got string) {
	t.Helper()
	for range 3 {
		var both sync.WaitGroup
		both.Go(func() { wantCode, want = kubectl(t, command, real, args) })
		both.Go(func() { gotCode, got = kubectl(t, command, ours, args) })
		both.Wait()
		if wantCode == gotCode && comparable(want) == comparable(got) {
			break
		}
	}
	return wantCode, want, gotCode, got
}

func kubectlAtFleetFollowsNames(t *testing.T, w *world) {
	pod := podNames(t, w.eu)[0]
	node := w.eu.Kubectl(t, "get", "pod", "-n", "web", pod, "-o", "jsonpath={.spec.nodeName}")
	for version, command := range kubectls {
		for _, c := range []struct {
			args   string
			shows  []string
			hides  []string
			failed bool
		}{
			{args: "get ns", shows: []string{"CLUSTER", "eu.web ", "us.web ", "eu.default ", "us.db "}},
			{args: "get ns eu.web -o name", shows: []string{"namespace/eu.web"}},
			{args: "get pods -n eu.web", shows: []string{pod}, hides: []string{"us ", "store-0"}},
			{args: "get pods -A", shows: []string{"eu.web", "us.web", "eu.db", "us.db", pod}},
			{args: "get nodes", shows: []string{"eu:node-0 ", "us:node-0 "}},
			{args: "describe pod -n eu.web " + pod, shows: []string{"eu:" + node, "Scheduled", "Controlled By:"}},
			{args: "events -n eu.web --for pod/" + pod, shows: []string{"Scheduled"}, hides: []string{"ScalingReplicaSet"}},
			{args: "describe node eu:" + node, shows: []string{"eu.web ", pod, "RegisteredNode", "HolderIdentity"},
				hides: []string{"us.web"}},
			{args: "get pods -A --field-selector=spec.nodeName=eu:" + node, shows: []string{pod}, hides: []string{"us.web"}},
			{args: "describe deploy -n eu.web shop", shows: []string{"NewReplicaSet:", "ScalingReplicaSet"}},
			{args: "describe ns eu.web", shows: []string{"eu.web", "Active"}},
			{args: "describe svc -n us.web shop", shows: []string{"Endpoints:"}},
			{args: "rollout status -n us.web deploy/shop", shows: []string{"successfully rolled out"}},
			{args: "api-resources", shows: []string{"deployments", "selfsubjectaccessreviews"}},
			{args: "explain pods", shows: []string{"Pod is a collection of containers"}},
			{args: "auth whoami", shows: []string{"admin", "system:masters"}},
			{args: "auth can-i list pods -n eu.web", shows: []string{"yes"}},
			{args: "auth can-i delete pods -n eu.web", shows: []string{"no - this is a read-only mirror"}, failed: true},
			{args: "auth can-i --list -n eu.web", shows: []string{"deployments.apps"}},
			{args: "logs -n eu.web " + pod, shows: []string{`read-only mirror, which has no log of pods`, `cluster "eu"`},
				failed: true},
			{args: "exec -n eu.web " + pod + " -- ls", shows: []string{`which has no exec of pods`, `cluster "eu"`},
				failed: true},
			{args: "delete pod -n eu.web " + pod, shows: []string{"read-only mirror", `cluster "eu"`}, failed: true},
			{args: "get node node-0", shows: []string{"cluster:name, such as eu:node-1"}, failed: true},
			{args: "get ns web", shows: []string{"cluster.namespace, such as eu.web"}, failed: true},
			{args: "get pods -n web", shows: []string{"eu ", "us ", pod}, hides: []string{"store-0"}},
			{args: "get pod " + pod + " -n web", shows: []string{"a namespace of one cluster, such as eu.web"}, failed: true},
			{args: "get pods -n asia.web", shows: []string{`"asia" not found`}, failed: true},
		} {
			code, out := kubectl(t, command, w.kubeconfig(t, admin, "/fleet"), c.args)
			if (code != 0) != c.failed {
				t.Errorf("kubectl %s %s: exit code %d:\n%s", version, c.args, code, out)
			}
			for _, text := range c.shows {
				if !strings.Contains(out, text) {
					t.Errorf("kubectl %s %s does not show %q:\n%s", version, c.args, text, out)
				}
			}
			for _, text := range c.hides {
				if strings.Contains(out, text) {
					t.Errorf("kubectl %s %s shows %q:\n%s", version, c.args, text, out)
				}
			}
		}
	}
}

// output is what a process has printed so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write adds output.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func kubectlWatchShowsChanges(t *testing.T, w *world) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ns := w.eu.Namespace(t)
	watches := map[string]*output{}
	for version, command := range kubectls {
		for path, namespace := range map[string]string{"/clusters/eu": ns, "/fleet": "eu." + ns} {
			cmd := exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)], "get", "configmaps", "-n",
				namespace, "-w", "--output-watch-events")...)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig(t, admin, path), "HOME="+t.TempDir())
			out := &output{}
			cmd.Stdout, cmd.Stderr = out, out
			check(t, cmd.Start())
			defer cmd.Wait() // the context ends it
			watches["kubectl "+version+" on "+path] = out
		}
	}
	defer cancel()
	await := func(text string) {
		t.Helper()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		late := time.Now().Add(deadline)
		for name, out := range watches {
			for ; !strings.Contains(spaces.ReplaceAllString(out.String(), " "), text); <-tick.C {
				if time.Now().After(late) {
					t.Fatalf("%s does not show %q:\n%s", name, text, out)
				}
			}
		}
	}
	w.eu.Kubectl(t, "create", "configmap", "-n", ns, "color", "--from-literal=a=1")
	await("color 1")
	w.eu.Kubectl(t, "patch", "configmap", "-n", ns, "color", "-p", `{"data":{"b":"2"}}`)
	await("color 2")
	w.eu.Kubectl(t, "delete", "configmap", "-n", ns, "color")
	await("DELETED")
}
