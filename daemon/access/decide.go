package access

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Decide reports whether a user may make a request, and why: the reason names the binding that allows the request, or
// the roles that are missing. It is empty for a request that no rule allows.
func (r *RBAC) Decide(u user.Info, a Attributes) (allowed bool, reason string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	first, missing := r.firstAllowing(u, "", &a)
	if first == nil && a.Namespace != "" {
		var more bool
		first, more = r.firstAllowing(u, a.Namespace, &a)
		missing = missing || more
	}
	if first != nil {
		return true, first.describe(u)
	}
	if missing {
		_, err := r.applicable(u, a.Namespace)
		return false, fmt.Sprintf("RBAC: %v", err)
	}
	return false, ""
}

// firstAllowing returns the first binding of one namespace, or of none, that allows a request, and whether it has seen
// a binding to a role that is missing.
func (r *RBAC) firstAllowing(u user.Info, namespace string, a *Attributes) (first *binding, missing bool) {
	for s := range r.subjectsOf(u) {
		for _, b := range s.in(namespace) {
			if first != nil && b.name >= first.name {
				break
			}
			if b.role.set == nil {
				missing = true
			} else if b.role.set.allows(a) {
				first = b
				break
			}
		}
	}
	return first, missing
}

// Rules returns the rules that apply to a user in a namespace, as a SelfSubjectRulesReview lists them. The rules are
// complete except for the roles that the error names as missing. The caller must not change them.
func (r *RBAC) Rules(u user.Info, namespace string) (
	[]authorizationv1.ResourceRule, []authorizationv1.NonResourceRule, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	resourceRules, otherRules := []authorizationv1.ResourceRule{}, []authorizationv1.NonResourceRule{}
	bindings, err := r.applicable(u, namespace)
	for _, b := range bindings {
		for i := range b.role.set.rules {
			rule := &b.role.set.rules[i]
			if len(rule.Resources) > 0 {
				resourceRules = append(resourceRules, authorizationv1.ResourceRule{Verbs: rule.Verbs,
					APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames})
			}
			if len(rule.NonResourceURLs) > 0 {
				otherRules = append(otherRules, authorizationv1.NonResourceRule{Verbs: rule.Verbs,
					NonResourceURLs: rule.NonResourceURLs})
			}
		}
	}
	return resourceRules, otherRules, err
}

// applicable returns the bindings that apply to a user at cluster scope and in a namespace, in order, without those to
// a role that is missing, and an error that names these roles.
func (r *RBAC) applicable(u user.Info, namespace string) (bindings []*binding, err error) {
	for s := range r.subjectsOf(u) {
		bindings = append(bindings, s.in("")...)
		if namespace != "" {
			bindings = append(bindings, s.in(namespace)...)
		}
	}
	slices.SortFunc(bindings, func(a, b *binding) int { return a.compare(b.bindingKey) })
	bindings = slices.Compact(bindings)
	var missing []error
	bindings = slices.DeleteFunc(bindings, func(b *binding) bool {
		if b.role.set != nil {
			return false
		}
		missing = append(missing, b.role.missing())
		return true
	})
	return bindings, utilerrors.NewAggregate(missing)
}

// subjectsOf returns the subjects that are the user or one of its groups and that have bindings. A group that a user
// has twice is returned twice.
func (r *RBAC) subjectsOf(u user.Info) iter.Seq[*subject] {
	return func(yield func(*subject) bool) {
		if u == nil {
			return
		}
		if s := r.subjects[subjectKey{name: u.GetName()}]; s != nil && !yield(s) {
			return
		}
		for _, group := range u.GetGroups() {
			if s := r.subjects[subjectKey{true, group}]; s != nil && !yield(s) {
				return
			}
		}
	}
}

// in returns the bindings of a subject in a namespace, or its ClusterRoleBindings if the namespace is empty.
func (s *subject) in(namespace string) []*binding {
	rest := s.bindings
	if namespace != "" {
		first, _ := slices.BinarySearchFunc(rest, bindingKey{namespace: namespace}, compareToKey)
		rest = rest[first:]
	}
	for i, b := range rest {
		if b.namespace != namespace {
			return rest[:i]
		}
	}
	return rest
}

// allows reports whether one of the rules allows a request.
func (s *ruleSet) allows(a *Attributes) bool {
	for i := range s.rules {
		if allows(&s.rules[i], a) {
			return true
		}
	}
	return false
}

// missing returns the error of Kubernetes for a role that does not exist.
func (r *role) missing() error {
	switch r.kind {
	case kindRole, kindClusterRole:
		return apierrors.NewNotFound(rbacv1.Resource(strings.ToLower(r.kind)), r.name)
	}
	return fmt.Errorf("unsupported role reference kind: %q", r.kind)
}

// describe names a binding, its role, and the first of its subjects that is the user or one of its groups.
func (b *binding) describe(u user.Info) string {
	text := make([]byte, 0, 192)
	if b.namespace == "" {
		text = appendNamed(text, "RBAC: allowed by ClusterRoleBinding ", b.name)
	} else {
		text = appendNamed(text, "RBAC: allowed by RoleBinding ", b.name, "/", b.namespace)
	}
	text = append(text, " of "...)
	text = append(text, b.role.kind...)
	text = appendNamed(text, " ", b.role.name)
	for _, s := range b.subjects {
		switch {
		case s.group:
			if slices.Contains(u.GetGroups(), s.name) {
				return string(appendNamed(text, " to Group ", s.name))
			}
		case s.name != u.GetName():
		case s.account > 0:
			account := strings.TrimPrefix(s.name, serviceaccount.ServiceAccountUsernamePrefix)
			return string(appendNamed(text, " to ServiceAccount ", account[s.account+1:], "/", account[:s.account]))
		default:
			return string(appendNamed(text, " to User ", s.name))
		}
	}
	return string(text) // not reached: a binding applies only because of a subject
}

// appendNamed appends words and a name in quotes as fmt's %q has it.
func appendNamed(text []byte, words string, name ...string) []byte {
	text = append(append(text, words...), '"')
	start := len(text)
	for _, part := range name {
		text = append(text, part...)
	}
	for _, c := range text[start:] {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return strconv.AppendQuote(text[:start-1], string(text[start:]))
		}
	}
	return append(text, '"')
}
