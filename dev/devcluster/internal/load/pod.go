package load

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// machine is a node that pods are put on.
type machine struct{ name, ip string }

// newPod returns a pod of the template as the controller manager would post it, but already bound to a node, because
// the scheduler is not under test here.
func (t *template) newPod(name string, on machine, controllers bool) *corev1.Pod {
	spec := t.spec.DeepCopy()
	spec.NodeName = on.name
	if !controllers {
		addServiceAccount(spec)
	}
	labels := maps.Clone(t.labels)
	labels[batchv1.JobNameLabel] = t.name
	labels[batchv1.ControllerUidLabel] = string(t.job.UID)
	owner := metav1.NewControllerRef(t.job, batchv1.SchemeGroupVersion.WithKind("Job"))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: t.namespace, Labels: labels,
			GenerateName:    fmt.Sprintf("%s-%s-", t.name, t.hash),
			Annotations:     annotations(t),
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Spec: *spec,
	}
}

// addServiceAccount does what the API server's ServiceAccount admission plugin does if it is enabled.
func addServiceAccount(spec *corev1.PodSpec) {
	spec.ServiceAccountName = "default"
	volume := "kube-api-access-" + letters(mathrand.Uint64(), 5)
	seconds, mode := int64(3607), int32(0o644)
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: &mode,
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &seconds, Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
					Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace",
					FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
			},
		}}})
	for i := range spec.Containers {
		spec.Containers[i].VolumeMounts = append(spec.Containers[i].VolumeMounts, corev1.VolumeMount{
			Name: volume, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"})
	}
}

// runningStatus sets the status that the kubelet writes once all containers run. The timestamps follow the creation in
// order, a few seconds apart, each different, as on a real node.
func runningStatus(pod *corev1.Pod, on machine) {
	created := pod.CreationTimestamp.Time
	at := func(seconds int) metav1.Time {
		return metav1.NewTime(created.Add(time.Duration(seconds) * time.Second))
	}
	pull := 1 + mathrand.IntN(4)
	condition := func(kind corev1.PodConditionType, seconds int) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at(seconds),
			ObservedGeneration: pod.Generation}
	}
	s := &pod.Status
	s.ObservedGeneration = pod.Generation
	s.Phase = corev1.PodRunning
	s.Conditions = []corev1.PodCondition{
		condition(corev1.PodReadyToStartContainers, 1+pull),
		condition(corev1.PodInitialized, 1),
		condition(corev1.PodReady, 4+pull),
		condition(corev1.ContainersReady, 3+pull),
		condition(corev1.PodScheduled, 0),
	}
	start := at(0)
	s.StartTime = &start
	s.HostIP = on.ip
	s.HostIPs = []corev1.HostIP{{IP: on.ip}}
	s.PodIP = fmt.Sprintf("10.%d.%d.%d", 128+mathrand.IntN(128), mathrand.IntN(256), 1+mathrand.IntN(254))
	s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	s.ContainerStatuses = make([]corev1.ContainerStatus, len(pod.Spec.Containers))
	for i, c := range pod.Spec.Containers {
		s.ContainerStatuses[i] = runningContainer(&c, at(1+pull+i))
	}
}

func runningContainer(c *corev1.Container, since metav1.Time) corev1.ContainerStatus {
	started := true
	mounts := make([]corev1.VolumeMountStatus, len(c.VolumeMounts))
	for i, m := range c.VolumeMounts {
		mounts[i] = corev1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			disabled := corev1.RecursiveReadOnlyDisabled
			mounts[i].RecursiveReadOnly = &disabled
		}
	}
	return corev1.ContainerStatus{
		Name:               c.Name,
		Image:              c.Image,
		ImageID:            imageID(c.Image),
		ContainerID:        containerID(),
		Ready:              true,
		Started:            &started,
		State:              corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}},
		AllocatedResources: c.Resources.Requests,
		Resources:          &corev1.ResourceRequirements{Requests: c.Resources.Requests, Limits: c.Resources.Limits},
		VolumeMounts:       mounts,
	}
}

// imageID returns the digest of an image, as a container runtime reports it.
func imageID(image string) string {
	repository, _, _ := strings.Cut(image, ":")
	return fmt.Sprintf("%s@sha256:%x", repository, sha256.Sum256([]byte(image)))
}

// containerID returns an id as containerd makes them.
func containerID() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return "containerd://" + hex.EncodeToString(b[:])
}
