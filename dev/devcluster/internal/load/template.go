package load

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/part"
)

// Label marks everything that load creates; its value on pods is the template's name.
const Label = part.HandsOffLabel

// managedBy tells Kubernetes' Job controller to ignore these Jobs.
const managedBy = "devcluster.mirador.dev/load"

// template is one workload: what its pods have in common.
type template struct {
	index     int
	name      string
	namespace string
	pods      int    // how many it should have
	hash      string // as in pod-template-hash
	image     string
	sidecar   string
	labels    map[string]string
	spec      corev1.PodSpec // without what differs per pod
	job       *batchv1.Job   // as the server has it, once ensured
}

var (
	areas = []string{"checkout", "cart", "search", "catalog", "billing", "ledger", "identity", "session",
		"inventory", "shipping", "pricing", "reviews", "mailer", "media", "metrics", "gateway"}
	roles = []string{"api", "worker", "frontend", "cache", "indexer", "sync", "scheduler", "export"}
	tiers = []string{"frontend", "backend", "data"}
)

// newTemplates returns the templates for o, spread over its namespaces.
func newTemplates(o Options) []*template {
	all := make([]*template, o.Templates)
	for i := range all {
		r := rand.New(rand.NewPCG(o.Seed, uint64(i)))
		t := &template{
			index:     i,
			name:      fmt.Sprintf("%s-%s-%d", pick(r, areas), pick(r, roles), i),
			namespace: namespaceName(i % o.Namespaces),
			pods:      o.Pods / o.Templates,
		}
		if i < o.Pods%o.Templates {
			t.pods++
		}
		t.hash = shortHash(o.Seed, t.name)
		t.image = fmt.Sprintf("registry.example/shop/%s:v%d.%d.%d", t.name, 1+r.IntN(3), r.IntN(20), r.IntN(10))
		t.sidecar = fmt.Sprintf("registry.example/mesh/proxy:1.%d.%d", 20+r.IntN(4), r.IntN(6))
		t.labels = map[string]string{
			Label:                          t.name,
			"app":                          t.name,
			"app.kubernetes.io/name":       t.name,
			"app.kubernetes.io/part-of":    "shop",
			"app.kubernetes.io/managed-by": "devcluster",
			"tier":                         pick(r, tiers),
			"pod-template-hash":            t.hash,
		}
		t.spec = podSpec(r, t)
		all[i] = t
	}
	return all
}

func namespaceName(i int) string { return fmt.Sprintf("load-%d", i) }

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// alphabet is the one that Kubernetes uses for generated names, which cannot spell words.
const alphabet = "bcdfghjklmnpqrstvwxz2456789"

// shortHash returns ten letters that depend on the seed and the arguments.
func shortHash(seed uint64, of ...any) string { return letters(seed, 10, of...) }

func letters(seed uint64, n int, of ...any) string {
	h := fnv.New64a()
	fmt.Fprint(h, seed, of)
	r := rand.New(rand.NewPCG(h.Sum64(), seed))
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

// podName returns the i-th name of a template's pods.
func (t *template) podName(seed uint64, i int) string {
	return fmt.Sprintf("%s-%s-%s", t.name, t.hash, letters(seed, 6, t.name, i))
}

// newJob returns the Job that owns the template's pods.
func (t *template) newJob() *batchv1.Job {
	by, parallelism, backoff := managedBy, int32(t.pods), int32(6)
	spec := *t.spec.DeepCopy()
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: t.name, Namespace: t.namespace,
			Labels: map[string]string{Label: t.name, "app": t.name},
		},
		Spec: batchv1.JobSpec{
			ManagedBy:    &by,
			Parallelism:  &parallelism,
			BackoffLimit: &backoff,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: t.labels, Annotations: annotations(t)},
				Spec:       spec,
			},
		},
	}
}

// annotations returns the annotations of all pods of a template.
func annotations(t *template) map[string]string {
	return map[string]string{
		"prometheus.io/scrape":                    "true",
		"prometheus.io/port":                      "9090",
		"prometheus.io/path":                      "/metrics",
		"kubectl.kubernetes.io/default-container": "app",
		"example.com/config-checksum":             shortHash(0, t.name, "config"),
	}
}
