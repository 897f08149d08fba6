package testpods

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DefaultTemplates is the number of workloads of a medium-sized cluster.
const DefaultTemplates = 200

// namespaceCount is the number of namespaces of the templates.
const namespaceCount = 20

// Set makes pods. It is immutable, so any number of goroutines may use it at a time.
type Set struct {
	seed      uint64
	templates []*template
}

// New returns the pods of a seed. Fewer than one template is taken as
// DefaultTemplates.
func New(seed uint64, templates int) *Set {
	if templates < 1 {
		templates = DefaultTemplates
	}
	s := &Set{seed: seed, templates: make([]*template, templates)}
	var wg sync.WaitGroup // ten thousand templates take seconds on one core
	cores := runtime.GOMAXPROCS(0)
	for core := range cores {
		wg.Go(func() {
			for i := core; i < templates; i += cores {
				s.templates[i] = newTemplate(seed, i)
			}
		})
	}
	wg.Wait()
	return s
}

// Key returns the key of the i-th pod, without making it.
func (s *Set) Key(i int) string {
	n := len(s.templates)
	t := s.templates[i%n]
	return t.namespace + "/" + t.generateName + suffix(i/n)
}

// Pod returns the i-th pod, running and ready. Consecutive pods have different templates: i and j are siblings if they
// are equal modulo the number of templates.
func (s *Set) Pod(i int) *corev1.Pod {
	n := len(s.templates)
	t, ordinal := s.templates[i%n], i/n
	r := rand.New(rand.NewPCG(s.seed, uint64(i)+1))

	pod := decode(t.encoded)
	pod.Name = t.generateName + suffix(ordinal)
	pod.UID = types.UID(uuid(r))
	pod.ResourceVersion = strconv.Itoa(firstVersion + i*16 + r.IntN(16))

	created := epoch.Add(time.Duration(r.IntN(90*24*3600)) * time.Second)
	at := func(seconds int) metav1.Time {
		return metav1.NewTime(created.Add(time.Duration(seconds) * time.Second).Local())
	}
	pull := 1 + r.IntN(9)
	pod.CreationTimestamp = at(0)

	volume := accessVolume + letters(r, 5)
	renameAccess(pod, volume)
	node := r.IntN(nodes)
	pod.Spec.NodeName = "node-" + strconv.Itoa(node) + ".shop.example"
	ip := fmt.Sprintf("10.%d.%d.%d", 64+r.IntN(64), r.IntN(256), 1+r.IntN(254))
	fillStatus(pod, ip, fmt.Sprintf("192.168.%d.%d", node/250, 1+node%250), r, at, pull)

	managers := pod.ManagedFields
	setTime(&managers[0], at(0))
	setTime(&managers[1], at(1))
	setTime(&managers[2], at(8+pull))
	setFields(&managers[2], strings.Replace(t.statusFields, ipPlaceholder, ip, 1))
	return pod
}

// Changed returns the state of p after its next change, as a new object: it loses or gains readiness, and gains it by
// a restarted container. The versions grow with n, which should be different in each call, and are above those of
// every unchanged pod.
func (s *Set) Changed(p *corev1.Pod, n int) *corev1.Pod {
	encoded, err := p.Marshal()
	if err != nil {
		panic(fmt.Sprintf("encode pod %s/%s: %v", p.Namespace, p.Name, err)) // in-memory protobuf cannot fail
	}
	next := decode(encoded)
	r := rand.New(rand.NewPCG(s.seed^0x5bd1e995, uint64(n)))
	now := metav1.NewTime(epoch.AddDate(0, 4, 0).Add(time.Duration(n) * time.Second).Local())

	next.ResourceVersion = strconv.Itoa(changedVersion + n)
	setTime(&next.ManagedFields[len(next.ManagedFields)-1], now)
	toReady := !next.Status.ContainerStatuses[0].Ready
	state := corev1.ConditionFalse
	if toReady {
		state = corev1.ConditionTrue
	}
	for i := range next.Status.Conditions {
		c := &next.Status.Conditions[i]
		if c.Type != corev1.PodReady && c.Type != corev1.ContainersReady {
			continue
		}
		c.Status, c.LastTransitionTime = state, now
		c.Reason, c.Message = "", ""
		if !toReady {
			c.Reason, c.Message = "ContainersNotReady", "containers with unready status: [app]"
		}
	}
	app := &next.Status.ContainerStatuses[0]
	app.Ready = toReady
	if toReady {
		app.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "OOMKilled", StartedAt: app.State.Running.StartedAt, FinishedAt: now,
			ContainerID: strings.Clone(app.ContainerID),
		}
		app.State.Running.StartedAt = now
		app.RestartCount++
		app.ContainerID = containerID(r)
	}
	return next
}

// Versions and times of the imaginary cluster.
const (
	firstVersion   = 1_000_000
	changedVersion = 1_000_000_000
	nodes          = 400
)

var epoch = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

func decode(encoded []byte) *corev1.Pod {
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(encoded); err != nil {
		panic(fmt.Sprintf("decode a pod that was encoded here: %v", err))
	}
	return pod
}

// renameAccess sets the name of the service account's volume and its mounts.
func renameAccess(pod *corev1.Pod, name string) {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Name == accessVolume {
			pod.Spec.Volumes[i].Name = strings.Clone(name)
		}
	}
	for i := range pod.Spec.Containers {
		mounts := pod.Spec.Containers[i].VolumeMounts
		for j := range mounts {
			if mounts[j].Name == accessVolume {
				mounts[j].Name = strings.Clone(name)
			}
		}
	}
}

// fillStatus sets a status's addresses, ids and timestamps, which follow the creation in order, as on a real node.
func fillStatus(pod *corev1.Pod, ip, hostIP string, r *rand.Rand, at func(int) metav1.Time, pull int) {
	s := &pod.Status
	for i, seconds := range []int{2 + pull, 1, 7 + pull, 6 + pull, 0} {
		s.Conditions[i].LastTransitionTime = at(seconds)
	}
	start := at(0)
	s.StartTime = &start
	s.HostIP, s.HostIPs = hostIP, []corev1.HostIP{{IP: strings.Clone(hostIP)}}
	s.PodIP, s.PodIPs = ip, []corev1.PodIP{{IP: strings.Clone(ip)}}
	for i := range s.ContainerStatuses {
		c := &s.ContainerStatuses[i]
		c.ContainerID = containerID(r)
		c.State.Running = &corev1.ContainerStateRunning{StartedAt: at(3 + pull + i)}
	}
}

func setTime(entry *metav1.ManagedFieldsEntry, at metav1.Time) { entry.Time = &at }

// alphabet is the one that Kubernetes uses for generated names, which cannot spell words.
const alphabet = "bcdfghjklmnpqrstvwxz2456789"

func letters(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

// suffix returns five letters that no other pod of the template has: ordinals are multiplied by a number that is
// coprime to the size of the alphabet, so that no two are equal.
func suffix(ordinal int) string {
	const size = len(alphabet) * len(alphabet) * len(alphabet) * len(alphabet) * len(alphabet)
	x := (uint64(ordinal)*7_919_777 + 4_242_421) % uint64(size)
	b := make([]byte, 5)
	for i := range b {
		b[i] = alphabet[x%uint64(len(alphabet))]
		x /= uint64(len(alphabet))
	}
	return string(b)
}

func randomHex(r *rand.Rand, bytes int) string {
	b := make([]byte, 0, 32)
	for len(b) < bytes {
		x := r.Uint64()
		for range 8 {
			b = append(b, byte(x))
			x >>= 8
		}
	}
	return hex.EncodeToString(b[:bytes])
}

// containerID returns an id as containerd makes them.
func containerID(r *rand.Rand) string { return "containerd://" + randomHex(r, 32) }

// uuid returns a random uuid of version 4.
func uuid(r *rand.Rand) string {
	h := []byte(randomHex(r, 16))
	h[12] = '4'
	h[16] = "89ab"[r.IntN(4)]
	return string(h[:8]) + "-" + string(h[8:12]) + "-" + string(h[12:16]) + "-" + string(h[16:20]) + "-" + string(h[20:])
}
