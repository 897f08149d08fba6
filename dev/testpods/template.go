package testpods

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Placeholders in a template for values that differ per pod.
const (
	accessVolume  = "kube-api-access-"
	ipPlaceholder = "@ip@"
)

// template is one workload: what its pods have in common.
type template struct {
	namespace    string
	generateName string
	encoded      []byte // a pod without the values that differ per pod
	statusFields string // the kubelet's managedFields, with ipPlaceholder
}

var (
	areas = []string{"checkout", "cart", "search", "catalog", "billing", "ledger", "identity", "session",
		"inventory", "shipping", "pricing", "reviews", "mailer", "media", "metrics", "gateway"}
	roles    = []string{"api", "worker", "frontend", "cache", "indexer", "sync", "scheduler", "export"}
	tiers    = []string{"frontend", "backend", "data"}
	teams    = []string{"atlas", "borealis", "cobalt", "delta", "ember", "fjord", "granite"}
	tracks   = []string{"stable", "canary", "beta"}
	priority = []string{"", "", "batch-low", "serving-high"}
)

func newTemplate(seed uint64, index int) *template {
	r := rand.New(rand.NewPCG(seed, uint64(index)<<32|0xdecade))
	name := fmt.Sprintf("%s-%s-%d", pick(r, areas), pick(r, roles), index)
	hash := letters(r, 10)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: name + "-" + hash + "-",
			Namespace:    fmt.Sprintf("shop-%s-%d", teams[index%namespaceCount%len(teams)], index%namespaceCount),
			Generation:   1,
			Labels:       labels(r, name, hash),
			Annotations:  annotations(r, name),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-" + hash, UID: types.UID(uuid(r)),
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: podSpec(r, name),
	}
	pod.Status = podStatus(r, &pod.Spec)
	t := &template{namespace: pod.Namespace, generateName: pod.GenerateName}
	pod.ManagedFields, t.statusFields = managedFields(pod)
	// This follows managedFields, because what admission adds has no manager.
	addDefaults(pod)
	encoded, err := pod.Marshal()
	if err != nil {
		panic(fmt.Sprintf("encode the template %s: %v", name, err)) // in-memory protobuf cannot fail
	}
	t.encoded = encoded
	return t
}

func labels(r *rand.Rand, name, hash string) map[string]string {
	l := map[string]string{
		"app":                       name,
		"app.kubernetes.io/version": fmt.Sprintf("v%d.%d.%d", 1+r.IntN(3), r.IntN(20), r.IntN(10)),
		"pod-template-hash":         hash,
		"team":                      pick(r, teams),
		"tier":                      pick(r, tiers),
	}
	if r.IntN(2) == 0 {
		l["track"] = pick(r, tracks)
	}
	return l
}

func annotations(r *rand.Rand, name string) map[string]string {
	a := map[string]string{
		"checksum/config":      randomHex(r, 32),
		"prometheus.io/scrape": "true",
		"prometheus.io/port":   "9090",
		costAnnotation:         fmt.Sprintf("cc-%04d", r.IntN(10000)),
	}
	if r.IntN(3) == 0 {
		a["sidecar.mesh.example/config"] = `{"proxy":{"concurrency":2,"service":"` + name + `"}}`
	}
	return a
}

// podStatus returns a running status without addresses, ids and timestamps.
func podStatus(r *rand.Rand, spec *corev1.PodSpec) corev1.PodStatus {
	s := corev1.PodStatus{ObservedGeneration: 1, Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable}
	for _, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized,
		corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		s.Conditions = append(s.Conditions,
			corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, ObservedGeneration: 1})
	}
	for _, c := range spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, containerStatus(&c, int32(r.IntN(3))))
	}
	return s
}

func containerStatus(c *corev1.Container, restarts int32) corev1.ContainerStatus {
	repository, _, _ := strings.Cut(c.Image, ":")
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: fmt.Sprintf("%s@sha256:%x", repository, sha256.Sum256([]byte(c.Image))),
		ContainerID: "containerd://", Ready: true, Started: new(true), RestartCount: restarts,
		State:     corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		Resources: &corev1.ResourceRequirements{Requests: c.Resources.Requests, Limits: c.Resources.Limits},
	}
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
