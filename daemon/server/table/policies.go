package table

import (
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var policies = []entry{
	of("policy", "PodDisruptionBudget", disruptionBudget),
	of("scheduling.k8s.io", "PriorityClass", priorityClass),
	of("node.k8s.io", "RuntimeClass", runtimeClass),
	of("coordination.k8s.io", "Lease", lease),
	of("certificates.k8s.io", "CertificateSigningRequest", signingRequest),
}

func disruptionBudget(b *policyv1.PodDisruptionBudget, now time.Time) Row {
	return cells(b.Name, bound(b.Spec.MinAvailable), bound(b.Spec.MaxUnavailable), int64(b.Status.DisruptionsAllowed),
		born(&b.ObjectMeta, now))
}

func bound(n *intstr.IntOrString) string {
	if n == nil {
		return "N/A"
	}
	return n.String()
}

func priorityClass(c *schedulingv1.PriorityClass, now time.Time) Row {
	policy := ""
	if c.PreemptionPolicy != nil {
		policy = string(*c.PreemptionPolicy)
	}
	return cells(c.Name, int64(c.Value), c.GlobalDefault, born(&c.ObjectMeta, now), policy)
}

func runtimeClass(c *nodev1.RuntimeClass, now time.Time) Row {
	return cells(c.Name, c.Handler, born(&c.ObjectMeta, now))
}

func lease(l *coordinationv1.Lease, now time.Time) Row {
	return cells(l.Name, val(l.Spec.HolderIdentity), born(&l.ObjectMeta, now))
}

func signingRequest(r *certificatesv1.CertificateSigningRequest, now time.Time) Row {
	asked := none
	if s := r.Spec.ExpirationSeconds; s != nil {
		asked = duration.HumanDuration(time.Duration(*s) * time.Second)
	}
	return cells(r.Name, born(&r.ObjectMeta, now), r.Spec.SignerName, r.Spec.Username, asked, signingWord(r))
}

// signingWord returns the decision about a request, and whether a certificate was issued. A denial overrides an
// approval.
func signingWord(r *certificatesv1.CertificateSigningRequest) string {
	has := map[certificatesv1.RequestConditionType]bool{}
	for _, c := range r.Status.Conditions {
		has[c.Type] = true
	}
	var words []string
	switch {
	case has[certificatesv1.CertificateDenied]:
		words = append(words, "Denied")
	case has[certificatesv1.CertificateApproved]:
		words = append(words, "Approved")
	default:
		words = append(words, "Pending")
	}
	if has[certificatesv1.CertificateFailed] {
		words = append(words, "Failed")
	}
	if len(r.Status.Certificate) > 0 {
		words = append(words, "Issued")
	}
	return strings.Join(words, ",")
}
