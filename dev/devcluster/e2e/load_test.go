package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const loadLabel = "devcluster.mirador.dev/load"

// loaded lists the pods that load has created, in all namespaces.
func loaded(t *testing.T, c *cluster) []corev1.Pod {
	t.Helper()
	list, err := c.client(t).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: loadLabel})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestLoadMakesRealisticPodsAndTopsUp(t *testing.T) {
	c := shared
	out := must(t, "load", "--name", c.name, "--pods", "500", "--templates", "10", "--namespaces", "4")
	if !regexp.MustCompile(`made 500 in [\d.]+ s, \d+ pods/s\n$`).MatchString(out) {
		t.Errorf("load does not report the rate:\n%s", out)
	}
	pods := loaded(t, c)
	if len(pods) != 500 {
		t.Fatalf("the server has %d pods, want 500", len(pods))
	}
	namespaces, templates := map[string]int{}, map[string]int{}
	for i := range pods {
		namespaces[pods[i].Namespace]++
		templates[pods[i].Labels["app"]]++
		checkLoadedPod(t, &pods[i])
	}
	if len(namespaces) != 4 || len(templates) != 10 {
		t.Errorf("%d namespaces and %d templates, want 4 and 10", len(namespaces), len(templates))
	}
	checkOwners(t, c, pods)

	must(t, "load", "--name", c.name, "--pods", "500", "--templates", "10", "--namespaces", "4")
	c.kubectl(t, "delete", "-n", pods[0].Namespace, "pod", pods[0].Name)
	must(t, "load", "--name", c.name, "--pods", "510", "--templates", "10", "--namespaces", "4")
	if n := len(loaded(t, c)); n != 510 {
		t.Errorf("topping up led to %d pods, want 510", n)
	}

	changes := must(t, "load", "--name", c.name, "--pods", "510", "--templates", "10", "--namespaces", "4", "--churn",
		"40/s", "--duration", "3s")
	m := regexp.MustCompile(`(\d+) changes in [\d.]+ s, [\d.]+/s\n$`).FindStringSubmatch(changes)
	if m == nil {
		t.Fatalf("the churn does not report its rate:\n%s", changes)
	}
	if n, _ := strconv.Atoi(m[1]); n < 30 || n > 130 {
		t.Errorf("%d changes in 3 s at 40/s", n)
	}
	checkChurned(t, c, pods)
}

// checkLoadedPod checks one pod as the server returns it.
func checkLoadedPod(t *testing.T, p *corev1.Pod) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("pod %s/%s: %s", p.Namespace, p.Name, fmt.Sprintf(format, args...))
	}
	if len(p.Spec.Containers) != 2 || p.Spec.Containers[0].LivenessProbe == nil ||
		p.Spec.Containers[0].ReadinessProbe == nil {
		fail("wants two containers and probes")
	}
	if !slices.ContainsFunc(p.Spec.Containers[0].Env,
		func(e corev1.EnvVar) bool { return e.ValueFrom != nil && e.ValueFrom.FieldRef != nil }) {
		fail("has no environment from a field")
	}
	access := 0
	for _, v := range p.Spec.Volumes {
		if strings.HasPrefix(v.Name, "kube-api-access-") && v.Projected != nil {
			access++
		}
	}
	if access != 1 || len(p.Spec.Volumes) != 4 {
		fail("has %d volumes, %d of them for the API: want 4 and 1", len(p.Spec.Volumes), access)
	}
	owner := metav1.GetControllerOf(p)
	if owner == nil || owner.Kind != "Job" || owner.UID == "" {
		fail("has no Job for an owner")
	}
	var managers []string
	for _, f := range p.ManagedFields {
		managers = append(managers, f.Manager+"/"+f.Subresource)
	}
	if got := strings.Join(managers, " "); got != "kube-controller-manager/ kubelet/status" {
		fail("is managed by %q", got)
	}
	s := p.Status
	if s.Phase != corev1.PodRunning || s.PodIP == "" || s.HostIP == "" || s.StartTime == nil ||
		s.QOSClass != corev1.PodQOSBurstable {
		fail("has the status %+v", s)
	}
	times := map[time.Time]bool{}
	for _, cond := range s.Conditions {
		times[cond.LastTransitionTime.Time] = true
	}
	if len(s.Conditions) != 5 || len(times) != 5 {
		fail("has %d conditions at %d times, want 5 and 5", len(s.Conditions), len(times))
	}
	if len(s.ContainerStatuses) != 2 || !strings.HasPrefix(s.ContainerStatuses[0].ContainerID, "containerd://") ||
		s.ContainerStatuses[0].ContainerID == s.ContainerStatuses[1].ContainerID {
		fail("has the container statuses %+v", s.ContainerStatuses)
	}
	if !strings.HasPrefix(p.Spec.NodeName, "node-") {
		fail("is on %q", p.Spec.NodeName)
	}
}

// checkOwners compares the pods' owners with the Jobs that the server has.
func checkOwners(t *testing.T, c *cluster, pods []corev1.Pod) {
	t.Helper()
	jobs, err := c.client(t).BatchV1().Jobs("").List(t.Context(), metav1.ListOptions{LabelSelector: loadLabel})
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]bool{}
	for _, j := range jobs.Items {
		uids[string(j.UID)] = true
		if j.Spec.ManagedBy == nil || j.Status.Active != 0 {
			t.Errorf("Job %s/%s was touched by the Job controller", j.Namespace, j.Name)
		}
	}
	for _, p := range pods {
		if !uids[string(metav1.GetControllerOf(&p).UID)] {
			t.Errorf("pod %s/%s has an owner that does not exist", p.Namespace, p.Name)
		}
	}
}

// checkChurned checks that there were all kinds of changes.
func checkChurned(t *testing.T, c *cluster, before []corev1.Pod) {
	t.Helper()
	known := map[string]string{}
	for _, p := range before {
		known[p.Namespace+"/"+p.Name] = p.ResourceVersion
	}
	changed, labelled := 0, 0
	for _, p := range loaded(t, c) {
		if known[p.Namespace+"/"+p.Name] != p.ResourceVersion {
			changed++
		}
		if p.Labels["track"] != "" {
			labelled++
		}
	}
	if changed < 20 || labelled == 0 {
		t.Errorf("%d pods changed, %d got another label", changed, labelled)
	}
}

func TestLoadWorksWithoutControllers(t *testing.T) {
	c := up(t, "--no-controllers")
	must(t, "load", "--name", c.name, "--pods", "30", "--templates", "3", "--namespaces", "3",
		"--churn", "50/s", "--duration", "2s")
	for _, p := range loaded(t, c) {
		if p.DeletionTimestamp != nil {
			t.Errorf("pod %s/%s waits for a kubelet, but there is none", p.Namespace, p.Name)
		}
	}
	// This is what a killed run leaves behind: a deletion that never ends.
	churned := loaded(t, c)
	left := churned[0]
	if err := c.client(t).CoreV1().Pods(left.Namespace).Delete(t.Context(), left.Name,
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := len(loaded(t, c)); n != len(churned) {
		t.Fatalf("the server has %d pods, want %d and one of them being deleted", n, len(churned))
	}
	must(t, "load", "--name", c.name, "--pods", "33", "--templates", "3", "--namespaces", "3")
	pods := loaded(t, c)
	if len(pods) != 33 {
		t.Fatalf("the server has %d pods, want 33", len(pods))
	}
	access := func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, "kube-api-access-") && v.Projected != nil }
	for _, p := range pods {
		if !slices.ContainsFunc(p.Spec.Volumes, access) || p.Spec.ServiceAccountName != "default" {
			t.Errorf("pod %s/%s lacks what the service-account admission adds", p.Namespace, p.Name)
		}
	}
}

func TestSameSeedGivesTheSameNames(t *testing.T) {
	names := func(c *cluster) string {
		must(t, "load", "--name", c.name, "--pods", "12", "--templates", "3", "--namespaces", "2", "--seed", "7")
		var all []string
		for _, p := range loaded(t, c) {
			all = append(all, p.Namespace+"/"+p.Name)
		}
		slices.Sort(all)
		return strings.Join(all, "\n")
	}
	first := up(t, "--no-controllers")
	a := names(first)
	must(t, "down", first.name)
	second := up(t, "--no-controllers")
	if b := names(second); a != b {
		t.Errorf("the names differ:\n%s\n\n%s", a, b)
	}
}
