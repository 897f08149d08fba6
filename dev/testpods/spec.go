package testpods

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// podSpec returns what a workload's author writes: two containers with probes,
// environment, resources and volumes. No two templates are alike.
func podSpec(r *rand.Rand, name string) corev1.PodSpec {
	spec := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyAlways,
		TerminationGracePeriodSeconds: new(int64(30 + 15*r.IntN(3))),
		DNSPolicy:                     corev1.DNSClusterFirst,
		SchedulerName:                 corev1.DefaultSchedulerName,
		PriorityClassName:             pick(r, priority),
		ServiceAccountName:            name,
		DeprecatedServiceAccount:      name,
		SecurityContext:               &corev1.PodSecurityContext{RunAsUser: new(int64(10000 + r.IntN(50)))},
		NodeSelector:                  map[string]string{corev1.LabelOSStable: "linux"},
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: name + "-config"}, DefaultMode: new(int32(0o644))}}},
		},
	}
	if r.IntN(4) == 0 {
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
		}}
	}
	spec.Containers = []corev1.Container{appContainer(r, name), proxyContainer(r, name)}
	return spec
}

func appContainer(r *rand.Rand, name string) corev1.Container {
	port := int32(8000 + r.IntN(1000))
	env := []corev1.EnvVar{
		{Name: "SERVICE_NAME", Value: name},
		{Name: "LOG_LEVEL", Value: pick(r, []string{"info", "warn", "debug"})},
		{Name: "DATABASE_URL", Value: fmt.Sprintf("postgres://%s@db-%d.shop.example:5432/%s", name, r.IntN(8), name)},
		fieldEnv("POD_NAME", "metadata.name"),
		{Name: "API_TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: name + "-token"}, Key: "token"}}},
	}
	for i := range r.IntN(3) {
		env = append(env,
			corev1.EnvVar{Name: fmt.Sprintf("FEATURE_%s", pick(r, []string{"CHECKOUT", "SEARCH", "RATING", "BUNDLES"})) +
				fmt.Sprint(i),
				Value: pick(r, []string{"true", "false", "10%"})})
	}
	args := []string{"serve", "--config=/etc/app/config.yaml", fmt.Sprintf("--workers=%d", 2+r.IntN(14))}
	if r.IntN(3) == 0 {
		args = append(args, "--trace-endpoint=http://otel-collector.observability:4317")
	}
	app := corev1.Container{
		Name:            "app",
		Image:           fmt.Sprintf("registry.example/shop/%s:v%d.%d.%d", name, 1+r.IntN(3), r.IntN(20), r.IntN(10)),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args:            args,
		Ports: []corev1.ContainerPort{
			{Name: "http", ContainerPort: port, Protocol: corev1.ProtocolTCP},
		},
		Env:       env,
		Resources: resources(r, 50, 128),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: "/etc/app", ReadOnly: true},
		},
		LivenessProbe:            probe(r, "/healthz", "http", 3),
		ReadinessProbe:           probe(r, "/readyz", "http", 3),
		TerminationMessagePath:   corev1.TerminationMessagePathDefault,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
	if r.IntN(2) == 0 {
		app.ReadinessProbe = probe(r, "/readyz", "http", 3)
	}
	return app
}

func proxyContainer(r *rand.Rand, name string) corev1.Container {
	return corev1.Container{
		Name:            "proxy",
		Image:           fmt.Sprintf("registry.example/mesh/proxy:1.%d.%d", 20+r.IntN(4), r.IntN(6)),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args:            []string{"proxy", "--service", name, "--drain-seconds", fmt.Sprint(10 + 5*r.IntN(5))},
		Env: []corev1.EnvVar{
			fieldEnv("INSTANCE_IP", "status.podIP"),
		},
		Resources:                resources(r, 10, 32),
		TerminationMessagePath:   corev1.TerminationMessagePathDefault,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
}

// addDefaults does what admission does to a pod: it adds the service account's token, the default tolerations and the
// priority.
func addDefaults(pod *corev1.Pod) {
	spec := &pod.Spec
	spec.EnableServiceLinks = new(true)
	spec.PreemptionPolicy = new(corev1.PreemptLowerPriority)
	spec.Priority = new(int32(len(spec.PriorityClassName) * 1000))
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			TolerationSeconds: new(int64(300))})
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: accessVolume, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: new(int32(0o644)),
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
					Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace",
					FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
			},
		}}})
	for i := range spec.Containers {
		c := &spec.Containers[i]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
			Name: accessVolume, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"})
	}
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

// probe returns an HTTP probe mostly, otherwise a TCP probe.
func probe(r *rand.Rand, path, port string, failures int32) *corev1.Probe {
	p := &corev1.Probe{
		PeriodSeconds: int32(5 + 5*r.IntN(3)), FailureThreshold: failures, SuccessThreshold: 1,
		TimeoutSeconds: int32(1 + r.IntN(3)),
	}
	if r.IntN(5) == 0 {
		p.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromString(port)}
	} else {
		p.HTTPGet = &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(port), Scheme: corev1.URISchemeHTTP}
	}
	return p
}

func resources(r *rand.Rand, milliCPU, mebibytes int) corev1.ResourceRequirements {
	cpu, memory := milliCPU*(1+r.IntN(8)), mebibytes*(1+r.IntN(8))
	list := func(cpu, memory int) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse(fmt.Sprintf("%dm", cpu)),
			corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dMi", memory)),
		}
	}
	return corev1.ResourceRequirements{Requests: list(cpu, memory), Limits: list(4*cpu, 2*memory)}
}
