package load

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// podSpec returns what the pods of a template have in common: two containers
// with probes, environment, resources and volumes.
func podSpec(r *rand.Rand, t *template) corev1.PodSpec {
	port := int32(8000 + r.IntN(1000))
	optional, no, grace := true, false, int64(30)
	return corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyOnFailure,
		TerminationGracePeriodSeconds: &grace,
		EnableServiceLinks:            &no,
		NodeSelector:                  map[string]string{corev1.LabelOSStable: "linux"},
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(10001)),
			FSGroup: new(int64(10001))},
		Tolerations: []corev1.Toleration{
			{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "shop", Effect: corev1.TaintEffectNoSchedule},
		},
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: t.name + "-config"}}}},
			{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: t.name + "-tls", Optional: &optional}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
		Containers: []corev1.Container{appContainer(r, t, port), sidecarContainer(t)},
	}
}

func appContainer(r *rand.Rand, t *template, port int32) corev1.Container {
	env := []corev1.EnvVar{
		{Name: "SERVICE_NAME", Value: t.name},
		{Name: "LISTEN_ADDRESS", Value: fmt.Sprintf(":%d", port)},
		{Name: "LOG_LEVEL", Value: pick(r, []string{"info", "warn", "debug"})},
		{Name: "DATABASE_URL", Value: fmt.Sprintf("postgres://%s@db-%d.example:5432/%s", t.name, r.IntN(8), t.name)},
		{Name: "CACHE_ADDRESSES", Value: fmt.Sprintf("cache-%d.example:6379,cache-%d.example:6379", r.IntN(4), 4+r.IntN(4))},
		fieldEnv("POD_NAME", "metadata.name"),
		fieldEnv("POD_NAMESPACE", "metadata.namespace"),
		fieldEnv("POD_IP", "status.podIP"),
		fieldEnv("NODE_NAME", "spec.nodeName"),
		{Name: "GOMAXPROCS", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{
			ContainerName: "app", Resource: "limits.cpu"}}},
		{Name: "API_TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: t.name + "-tls"}, Key: "token", Optional: new(true)}}},
	}
	return corev1.Container{
		Name:            "app",
		Image:           t.image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args:            []string{"serve", "--config=/etc/app/config.yaml"},
		Ports: []corev1.ContainerPort{
			{Name: "http", ContainerPort: port, Protocol: corev1.ProtocolTCP},
			{Name: "metrics", ContainerPort: 9090, Protocol: corev1.ProtocolTCP},
		},
		Env:       env,
		Resources: resources("5m", "500m", "16Mi", "512Mi"),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: "/etc/app", ReadOnly: true},
			{Name: "tls", MountPath: "/etc/tls", ReadOnly: true},
			{Name: "scratch", MountPath: "/tmp"},
		},
		StartupProbe:   probe("/healthz", "http", 2, 30),
		LivenessProbe:  probe("/healthz", "http", 10, 3),
		ReadinessProbe: probe("/readyz", "http", 5, 3),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

func sidecarContainer(t *template) corev1.Container {
	return corev1.Container{
		Name:            "proxy",
		Image:           t.sidecar,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args:            []string{"proxy", "--service", t.name, "--drain-seconds", "20"},
		Ports:           []corev1.ContainerPort{{Name: "admin", ContainerPort: 15000, Protocol: corev1.ProtocolTCP}},
		Env: []corev1.EnvVar{
			{Name: "PROXY_CONCURRENCY", Value: "2"},
			fieldEnv("INSTANCE_IP", "status.podIP"),
			fieldEnv("SERVICE_ACCOUNT", "spec.serviceAccountName"),
		},
		Resources:      resources("2m", "200m", "8Mi", "128Mi"),
		VolumeMounts:   []corev1.VolumeMount{{Name: "tls", MountPath: "/etc/proxy/tls", ReadOnly: true}},
		ReadinessProbe: probe("/ready", "admin", 5, 3),
	}
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

func probe(path, port string, period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(port)}},
		PeriodSeconds:    period,
		FailureThreshold: failures,
		TimeoutSeconds:   1,
	}
}

// resources requests little, so that 50,000 pods fit on a few nodes.
func resources(cpu, cpuLimit, memory, memoryLimit string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
			corev1.ResourceMemory: resource.MustParse(memory)},
		Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpuLimit),
			corev1.ResourceMemory: resource.MustParse(memoryLimit)},
	}
}
