package access

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/mirador-k8s/mirador/object"
)

const (
	kindRole               = "Role"
	kindClusterRole        = "ClusterRole"
	kindRoleBinding        = "RoleBinding"
	kindClusterRoleBinding = "ClusterRoleBinding"
)

// RBAC evaluates the roles and bindings of one cluster. All methods can be called concurrently.
type RBAC struct {
	id      uint64 // no other RBAC of the process has it
	version atomic.Uint64

	mu       sync.RWMutex
	changed  chan struct{}
	roles    map[roleKey]*role
	bindings map[bindingKey]*binding
	subjects map[subjectKey]*subject
	rules    ruleSets

	sets *sharedSets // that Visible has returned; they do not refer to the RBAC
}

// roleKey names a role as a binding refers to it. The namespace is empty if the kind is not Role. A binding can refer
// to any kind; a role exists only of the kinds Role and ClusterRole.
type roleKey struct{ kind, namespace, name string }

// A role is what bindings refer to, whether it exists or not. It is forgotten when it neither exists nor has bindings.
type role struct {
	roleKey
	set      *ruleSet // nil if the role does not exist
	bindings int
}

// bindingKey names a binding. The namespace of a ClusterRoleBinding is empty, and only that.
type bindingKey struct{ namespace, name string }

func (k bindingKey) compare(other bindingKey) int {
	if c := strings.Compare(k.namespace, other.namespace); c != 0 {
		return c
	}
	return strings.Compare(k.name, other.name)
}

// A binding has the subjects that can match a user, each once, in their order. It never changes.
type binding struct {
	bindingKey
	role     *role
	subjects []boundSubject
}

// A boundSubject is a subject as a binding names it.
type boundSubject struct {
	*subject
	// account is the length of the namespace in the name of the user, if the subject is a service account.
	account int
}

// is reports whether a bound subject is the given one.
func (s boundSubject) is(m matchingSubject) bool {
	return s.subjectKey == m.subjectKey && s.account == m.account
}

// subjectKey is the name of a user or a group. A service account is a user.
type subjectKey struct {
	group bool
	name  string
}

// A subject has all bindings that name it, sorted: ClusterRoleBindings first, then RoleBindings by namespace.
type subject struct {
	subjectKey
	bindings []*binding
}

var lastRBAC atomic.Uint64

// NewRBAC returns an RBAC without roles and bindings, which allows nothing.
func NewRBAC() *RBAC {
	return &RBAC{
		id:       lastRBAC.Add(1),
		changed:  make(chan struct{}),
		roles:    map[roleKey]*role{},
		bindings: map[bindingKey]*binding{},
		subjects: map[subjectKey]*subject{},
		sets:     &sharedSets{},
		rules:    ruleSets{seed: maphash.MakeSeed(), byHash: map[uint64][]*ruleSet{}},
	}
}

// Put adds or replaces a *rbacv1.Role, *rbacv1.ClusterRole, *rbacv1.RoleBinding or *rbacv1.ClusterRoleBinding. It does
// not retain the object. It fails for other types.
func (r *RBAC) Put(obj any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch o := obj.(type) {
	case *rbacv1.Role:
		if o.Namespace != "" {
			r.putRole(roleKey{kindRole, o.Namespace, o.Name}, o.Rules)
		}
	case *rbacv1.ClusterRole:
		r.putRole(roleKey{kindClusterRole, "", o.Name}, o.Rules)
	case *rbacv1.RoleBinding:
		if o.Namespace != "" {
			r.putBinding(bindingKey{o.Namespace, o.Name}, o.RoleRef, o.Subjects)
		}
	case *rbacv1.ClusterRoleBinding:
		r.putBinding(bindingKey{"", o.Name}, o.RoleRef, o.Subjects)
	default:
		return fmt.Errorf("evaluate an object for RBAC: %T is neither a role nor a binding", obj)
	}
	return nil
}

// Delete removes an object of one of the kinds Role, ClusterRole, RoleBinding and ClusterRoleBinding, if it exists.
func (r *RBAC) Delete(kind string, key object.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	namespace, name := key.Split()
	switch kind {
	case kindRole, kindClusterRole:
		r.deleteRole(roleKey{kind, namespace, name})
	case kindRoleBinding, kindClusterRoleBinding:
		if (namespace == "") == (kind == kindClusterRoleBinding) {
			r.deleteBinding(bindingKey{namespace, name})
		}
	}
}

// Version returns a number that is larger after each change that can affect an answer. An answer is at least as recent
// as the versions that were read before it.
func (r *RBAC) Version() uint64 { return r.version.Load() }

// Changed returns a channel that is closed at the next change of the version.
func (r *RBAC) Changed() <-chan struct{} {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.changed
}

func (r *RBAC) change() {
	r.version.Add(1)
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *RBAC) putRole(key roleKey, rules []rbacv1.PolicyRule) {
	o := r.role(key)
	set := r.rules.use(rules)
	old := o.set
	o.set = set
	if old != nil {
		r.rules.release(old)
	}
	if set != old && o.bindings > 0 {
		r.change()
	}
}

func (r *RBAC) deleteRole(key roleKey) {
	o := r.roles[key]
	if o == nil || o.set == nil {
		return
	}
	r.rules.release(o.set)
	o.set = nil
	if o.bindings > 0 {
		r.change()
	} else {
		delete(r.roles, key)
	}
}

// role returns the role with a key, which may be one that does not exist in the cluster.
func (r *RBAC) role(key roleKey) *role {
	o := r.roles[key]
	if o == nil {
		key = roleKey{sharedKind(key.kind), strings.Clone(key.namespace), strings.Clone(key.name)}
		o = &role{roleKey: key}
		r.roles[key] = o
	}
	return o
}

// sharedKind returns a copy of the name of a kind that takes no memory for the usual kinds.
func sharedKind(name string) string {
	switch name {
	case kindRole:
		return kindRole
	case kindClusterRole:
		return kindClusterRole
	}
	return strings.Clone(name)
}

func (r *RBAC) putBinding(key bindingKey, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
	refers := roleKey{kind: ref.Kind, name: ref.Name}
	if ref.Kind == kindRole {
		refers.namespace = key.namespace
	}
	matching := matchingSubjects(subjects, key.namespace)
	old := r.bindings[key]
	if old != nil {
		if old.role.roleKey == refers && slices.EqualFunc(old.subjects, matching, boundSubject.is) {
			return
		}
		r.removeBinding(old)
	}
	b := &binding{
		bindingKey: bindingKey{strings.Clone(key.namespace), strings.Clone(key.name)},
		role:       r.role(refers),
		subjects:   make([]boundSubject, len(matching)),
	}
	b.role.bindings++
	r.bindings[b.bindingKey] = b
	for i, m := range matching {
		s := r.subject(m.subjectKey)
		at, _ := slices.BinarySearchFunc(s.bindings, key, compareToKey)
		s.bindings = slices.Insert(s.bindings, at, b)
		b.subjects[i] = boundSubject{s, m.account}
	}
	if len(b.subjects) > 0 || old != nil && len(old.subjects) > 0 {
		r.change()
	}
}

func (r *RBAC) deleteBinding(key bindingKey) {
	b := r.bindings[key]
	if b == nil {
		return
	}
	r.removeBinding(b)
	if len(b.subjects) > 0 {
		r.change()
	}
}

// removeBinding removes a binding everywhere, and what was kept only because of it.
func (r *RBAC) removeBinding(b *binding) {
	delete(r.bindings, b.bindingKey)
	if b.role.bindings--; b.role.bindings == 0 && b.role.set == nil {
		delete(r.roles, b.role.roleKey)
	}
	for _, s := range b.subjects {
		if len(s.bindings) == 1 {
			delete(r.subjects, s.subjectKey)
			continue
		}
		at, _ := slices.BinarySearchFunc(s.bindings, b.bindingKey, compareToKey)
		s.bindings = slices.Delete(s.bindings, at, at+1)
	}
}

func compareToKey(b *binding, key bindingKey) int { return b.compare(key) }

// subject returns the subject with a key.
func (r *RBAC) subject(key subjectKey) *subject {
	s := r.subjects[key]
	if s == nil {
		key.name = strings.Clone(key.name)
		s = &subject{subjectKey: key}
		r.subjects[key] = s
	}
	return s
}

// A matchingSubject is a subject of a binding that can match a user.
type matchingSubject struct {
	subjectKey
	account int // as in boundSubject
}

// matchingSubjects returns the subjects of a binding that can match a user. A subject that is listed twice counts
// where it is listed first. As in Kubernetes, the API group of a subject does not count, and a service account
// without a namespace is in the namespace of the binding.
func matchingSubjects(subjects []rbacv1.Subject, namespace string) []matchingSubject {
	matching := make([]matchingSubject, 0, len(subjects))
	seen := make(map[subjectKey]bool, len(subjects))
	for i := range subjects {
		m := matchingSubject{subjectKey: subjectKey{name: subjects[i].Name}}
		switch subjects[i].Kind {
		case rbacv1.UserKind:
		case rbacv1.GroupKind:
			m.group = true
		case rbacv1.ServiceAccountKind:
			in := cmp.Or(subjects[i].Namespace, namespace)
			if in == "" {
				continue
			}
			m.name, m.account = serviceaccount.MakeUsername(in, m.name), len(in)
		default:
			continue
		}
		if !seen[m.subjectKey] {
			seen[m.subjectKey] = true
			matching = append(matching, m)
		}
	}
	return matching
}
