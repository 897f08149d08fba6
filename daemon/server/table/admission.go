package table

import (
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

const admissionGroup = "admissionregistration.k8s.io"

var admission = []entry{
	of(admissionGroup, "MutatingWebhookConfiguration", mutatingWebhooks),
	of(admissionGroup, "ValidatingWebhookConfiguration", validatingWebhooks),
	of(admissionGroup, "ValidatingAdmissionPolicy", validatingPolicy, "v1", "v1beta1"),
	of(admissionGroup, "ValidatingAdmissionPolicyBinding", validatingBinding, "v1", "v1beta1"),
	of(admissionGroup, "MutatingAdmissionPolicy", mutatingPolicy, "v1", "v1beta1", "v1alpha1"),
	of(admissionGroup, "MutatingAdmissionPolicyBinding", mutatingBinding, "v1", "v1beta1", "v1alpha1"),
}

func mutatingWebhooks(c *admissionv1.MutatingWebhookConfiguration, now time.Time) Row {
	return cells(c.Name, int64(len(c.Webhooks)), born(&c.ObjectMeta, now))
}

func validatingWebhooks(c *admissionv1.ValidatingWebhookConfiguration, now time.Time) Row {
	return cells(c.Name, int64(len(c.Webhooks)), born(&c.ObjectMeta, now))
}

func validatingPolicy(p *admissionv1.ValidatingAdmissionPolicy, now time.Time) Row {
	return cells(p.Name, int64(len(p.Spec.Validations)), paramKind(p.Spec.ParamKind), born(&p.ObjectMeta, now))
}

func validatingBinding(b *admissionv1.ValidatingAdmissionPolicyBinding, now time.Time) Row {
	return cells(b.Name, b.Spec.PolicyName, paramRef(b.Spec.ParamRef), born(&b.ObjectMeta, now))
}

func mutatingPolicy(p *admissionv1.MutatingAdmissionPolicy, now time.Time) Row {
	return cells(p.Name, int64(len(p.Spec.Mutations)), paramKind(p.Spec.ParamKind), born(&p.ObjectMeta, now))
}

func mutatingBinding(b *admissionv1.MutatingAdmissionPolicyBinding, now time.Time) Row {
	return cells(b.Name, b.Spec.PolicyName, paramRef(b.Spec.ParamRef), born(&b.ObjectMeta, now))
}

func paramKind(k *admissionv1.ParamKind) string {
	if k == nil {
		return unset
	}
	return k.APIVersion + "/" + k.Kind
}

// paramRef returns the name of a parameter, or the selector of several in the server's log format. An empty namespace
// means the object's own.
func paramRef(r *admissionv1.ParamRef) string {
	switch {
	case r == nil:
		return unset
	case r.Name != "":
		return or(r.Namespace, "*") + "/" + r.Name
	case r.Selector != nil:
		return r.Selector.String()
	}
	return unset
}
