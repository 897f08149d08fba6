package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"
)

// Mode is how requests for the objects of a cluster are authorized.
type Mode string

const (
	// ModeRBAC evaluates the cluster's own roles and bindings, which are mirrored.
	ModeRBAC Mode = "rbac"
	// ModeReview asks the cluster, by SubjectAccessReviews that are cached.
	ModeReview Mode = "review"
	// ModeRules evaluates the roles and bindings of the configuration.
	ModeRules Mode = "rules"
	// ModeNone allows everything.
	ModeNone Mode = "none"
)

// Config is the content of an access file.
type Config struct {
	metav1.TypeMeta `json:",inline"`
	// Roles are roles besides reader, operator and administrator.
	Roles []Role `json:"roles,omitempty"`
	// Bindings give roles to users and groups.
	Bindings []Binding `json:"bindings,omitempty"`
	// Clusters have settings for single clusters.
	Clusters []ClusterConfig `json:"clusters,omitempty"`
}

// Role is a set of rules. They are about the daemon itself (the resource clusters of group mirador.dev, and paths
// such as /metrics) and, with authorization rules, about the objects of clusters.
type Role struct {
	Name  string              `json:"name"`
	Rules []rbacv1.PolicyRule `json:"rules"`
}

// Binding gives a role to users and groups.
type Binding struct {
	Role   string   `json:"role"`
	Users  []string `json:"users,omitempty"`
	Groups []string `json:"groups,omitempty"`
	// Clusters and Namespaces limit the binding to some clusters, and to some namespaces in them. A binding with
	// Clusters or Namespaces says nothing about the daemon itself.
	Clusters   []string `json:"clusters,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
}

// ClusterConfig are the settings of one cluster.
type ClusterConfig struct {
	Name          string `json:"name"`
	Authorization Mode   `json:"authorization,omitempty"`
	// Users and Groups give the cluster's name for a name of the daemon's users. Names that are not in them get the
	// prefix, except the group system:authenticated, and names that begin with "system:" of users whom this cluster
	// itself has authenticated.
	Users       map[string]string `json:"users,omitempty"`
	Groups      map[string]string `json:"groups,omitempty"`
	UserPrefix  string            `json:"userPrefix,omitempty"`
	GroupPrefix string            `json:"groupPrefix,omitempty"`
}

const (
	configVersion = "mirador.dev/v1alpha1"
	configKind    = "AccessConfiguration"
)

// ParseConfig parses an access file, which is YAML.
func ParseConfig(b []byte) (*Config, error) {
	var c Config
	var begins struct {
		APIVersion any `json:"apiVersion"`
		Kind       any `json:"kind"`
	}
	if err := yaml.Unmarshal(b, &begins); err != nil {
		return nil, fmt.Errorf("it is not an %s: %s", configKind, plainYAMLError(err))
	}
	if begins.APIVersion != configVersion || begins.Kind != configKind {
		return nil, fmt.Errorf("it must begin with apiVersion: %s and kind: %s", configVersion, configKind)
	}
	if err := yaml.UnmarshalStrict(b, &c); err != nil {
		return nil, fmt.Errorf("it is not an %s of %s: %s", configKind, configVersion, plainYAMLError(err))
	}
	if _, err := newPolicy(ModeRBAC, &c); err != nil {
		return nil, err
	}
	return &c, nil
}

// plainYAMLError describes an error of a YAML file without the names of Go types.
func plainYAMLError(err error) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field == "" {
			return "it must be a mapping, and is of type " + e.Value
		}
		return fmt.Sprintf("the field %s must not be of type %s", e.Field, e.Value)
	}
	text := err.Error()
	if _, field, ok := strings.Cut(text, "json: unknown field "); ok {
		return "there is no field " + field
	}
	for _, prefix := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ",
		"while decoding JSON: ", "yaml: ", "unmarshal errors:"} {
		text = strings.TrimPrefix(text, prefix)
	}
	return strings.Join(strings.Fields(text), " ")
}

// administratorRole is the role whose users are administrators of the daemon.
const administratorRole = "administrator"

// daemonGroup is the API group of the daemon's own resources.
const daemonGroup = "mirador.dev"

// readyRoles are the roles that need not be configured.
var readyRoles = []Role{
	{"reader", []rbacv1.PolicyRule{
		{APIGroups: []string{daemonGroup}, Resources: []string{"clusters"}, Verbs: []string{"get", "list", "watch"}}}},
	{"operator", []rbacv1.PolicyRule{
		{APIGroups: []string{daemonGroup}, Resources: []string{"clusters"},
			Verbs: []string{"get", "list", "watch", "create", "update", "delete"}},
		{NonResourceURLs: []string{"/metrics", "/debug/*"}, Verbs: []string{"get"}}}},
	{administratorRole, []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}}},
}

// policy is a Config in the form in which it is used. It does not change.
type policy struct {
	byDefault      Mode
	config         Config
	daemon         *RBAC
	rules          *RBAC // of bindings without clusters
	rulesOf        map[string]*RBAC
	clusters       map[string]*ClusterConfig
	administrators struct{ users, groups map[string]bool }
}

func newPolicy(mode Mode, c *Config) (*policy, error) {
	if c == nil {
		c = &Config{}
	}
	p := &policy{byDefault: mode, config: *c, clusters: map[string]*ClusterConfig{}, rulesOf: map[string]*RBAC{}}
	p.administrators.users, p.administrators.groups = map[string]bool{}, map[string]bool{Administrators: true}
	roles := map[string][]rbacv1.PolicyRule{}
	for _, r := range slices.Concat(readyRoles, c.Roles) {
		if _, ok := roles[r.Name]; ok || r.Name == "" {
			return nil, fmt.Errorf("roles: there are two roles, or a ready one and another, with the name %q", r.Name)
		}
		for i, rule := range r.Rules {
			if err := checkRule(&rule); err != nil {
				return nil, fmt.Errorf("roles: %s: rules[%d]: %w", r.Name, i, err)
			}
		}
		roles[r.Name] = r.Rules
	}
	for i := range c.Clusters {
		cc := &c.Clusters[i]
		switch {
		case cc.Name == "" || p.clusters[cc.Name] != nil:
			return nil, fmt.Errorf("clusters[%d]: the name %q is missing or there twice", i, cc.Name)
		case !cc.Authorization.valid():
			return nil, fmt.Errorf("clusters[%d]: authorization: %q is none of rbac, review, rules and none",
				i, cc.Authorization)
		}
		p.clusters[cc.Name] = cc
	}
	return p, p.bind(roles)
}

func (m Mode) valid() bool {
	return m == "" || slices.Contains([]Mode{ModeRBAC, ModeReview, ModeRules, ModeNone}, m)
}

// checkRule refuses a rule that would allow nothing.
func checkRule(r *rbacv1.PolicyRule) error {
	switch {
	case len(r.Verbs) == 0:
		return fmt.Errorf("verbs are missing")
	case len(r.NonResourceURLs) > 0 && len(r.Resources)+len(r.APIGroups)+len(r.ResourceNames) > 0:
		return fmt.Errorf("it has nonResourceURLs and resources; write two rules")
	case len(r.NonResourceURLs) == 0 && (len(r.Resources) == 0 || len(r.APIGroups) == 0):
		return fmt.Errorf("resources and apiGroups are missing; write \"*\" for all, and \"\" for the core group")
	}
	return nil
}

// bind makes the RBACs of all bindings.
func (p *policy) bind(roles map[string][]rbacv1.PolicyRule) error {
	p.daemon, p.rules = rbacOf(roles), rbacOf(roles)
	for i := range p.config.Bindings {
		b := &p.config.Bindings[i]
		for _, cluster := range b.Clusters {
			if p.rulesOf[cluster] == nil {
				p.rulesOf[cluster] = rbacOf(roles)
			}
		}
	}
	for i := range p.config.Bindings {
		b := &p.config.Bindings[i]
		switch {
		case !known(roles, b.Role):
			return fmt.Errorf("bindings[%d]: there is no role %q; there are %s", i, b.Role,
				strings.Join(slices.Sorted(maps.Keys(roles)), ", "))
		case len(b.Users)+len(b.Groups) == 0:
			return fmt.Errorf("bindings[%d]: there are neither users nor groups", i)
		case b.Role == administratorRole && len(b.Clusters)+len(b.Namespaces) > 0:
			return fmt.Errorf("bindings[%d]: an administrator is one of the whole daemon; leave clusters and namespaces out", i)
		}
		if err := b.checkAnonymous(roles[b.Role]); err != nil {
			return fmt.Errorf("bindings[%d]: %w", i, err)
		}
		if b.Role == administratorRole {
			for _, u := range b.Users {
				p.administrators.users[u] = true
			}
			for _, g := range b.Groups {
				p.administrators.groups[g] = true
			}
		}
		if len(b.Clusters)+len(b.Namespaces) == 0 {
			b.putInto(p.daemon, i)
		}
		if len(b.Clusters) == 0 {
			b.putInto(p.rules, i)
			for _, r := range p.rulesOf {
				b.putInto(r, i)
			}
		}
		for _, cluster := range b.Clusters {
			b.putInto(p.rulesOf[cluster], i)
		}
	}
	return nil
}

// checkAnonymous refuses a binding that would give the anonymous user more than paths.
func (b *Binding) checkAnonymous(rules []rbacv1.PolicyRule) error {
	if !slices.Contains(b.Groups, user.AllUnauthenticated) && !slices.Contains(b.Users, user.Anonymous) {
		return nil
	}
	for i := range rules {
		if len(rules[i].Resources) > 0 {
			return fmt.Errorf("the role %q is given to requests without credentials (%s, %s), which may read paths such as "+
				"/metrics and no resources; define a role that has only nonResourceURLs", b.Role, user.AllUnauthenticated,
				user.Anonymous)
		}
	}
	return nil
}

func known(roles map[string][]rbacv1.PolicyRule, name string) bool {
	_, ok := roles[name]
	return ok
}

func rbacOf(roles map[string][]rbacv1.PolicyRule) *RBAC {
	r := NewRBAC()
	for name, rules := range roles {
		r.Put(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}) // the type is known
	}
	return r
}

// putInto adds binding number i to an RBAC.
func (b *Binding) putInto(r *RBAC, i int) {
	var subjects []rbacv1.Subject
	for _, u := range b.Users {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: u})
	}
	for _, g := range b.Groups {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: g})
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.Role}
	meta := metav1.ObjectMeta{Name: fmt.Sprintf("bindings[%d]", i)}
	if len(b.Namespaces) == 0 {
		r.Put(&rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}) // the type is known
		return
	}
	for _, meta.Namespace = range b.Namespaces {
		r.Put(&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}) // the type is known
	}
}

// administers reports whether a user is an administrator of the daemon.
func (p *policy) administers(u user.Info) bool {
	if len(u.GetExtra()[HomeCluster]) > 0 && strings.HasPrefix(u.GetName(), systemPrefix) {
		return false // another cluster may have a service account of this name
	}
	return p.administrators.users[u.GetName()] ||
		slices.ContainsFunc(u.GetGroups(), func(g string) bool { return p.administrators.groups[g] })
}

// mode returns how a cluster's objects are authorized.
func (p *policy) mode(cluster string) Mode {
	if c := p.clusters[cluster]; c != nil && c.Authorization != "" {
		return c.Authorization
	}
	return p.byDefault
}

// detects reports whether it has to be found out if RBAC alone decides in a cluster. It has not if the configuration
// names the cluster's mode.
func (p *policy) detects(cluster string) bool {
	c := p.clusters[cluster]
	return p.byDefault == ModeRBAC && (c == nil || c.Authorization == "")
}

// rulesIn returns the rights of the configuration in a cluster.
func (p *policy) rulesIn(cluster string) rights {
	if r := p.rulesOf[cluster]; r != nil {
		return localRights{rbac: r}
	}
	return localRights{rbac: p.rules}
}

// HomeCluster is the key of a user's extra values that names the cluster which authenticated the user. In other
// clusters, its names that begin with "system:", such as that of a service account, do not mean what they mean there.
const HomeCluster = "mirador.dev/cluster"

// inCluster returns a user under its names in a cluster. Groups of the daemon itself mean nothing there.
func (p *policy) inCluster(cluster string, u user.Info) user.Info {
	c := p.clusters[cluster]
	if c == nil {
		c = &ClusterConfig{}
	}
	home := u.GetExtra()[HomeCluster]
	atHome := slices.Contains(home, cluster)
	foreign := len(home) > 0 && !atHome
	out := &user.DefaultInfo{Name: u.GetName(), UID: u.GetUID(), Extra: u.GetExtra()}
	switch system := strings.HasPrefix(out.Name, systemPrefix); {
	case system && foreign:
		out.Name = reservedPrefix + strings.Join(home, ",") + ":" + out.Name
	case system && atHome:
	default:
		out.Name = nameIn(out.Name, c.Users, c.UserPrefix)
	}
	for _, g := range u.GetGroups() {
		switch {
		case strings.HasPrefix(g, reservedPrefix):
		case foreign && strings.HasPrefix(g, systemPrefix) && g != user.AllAuthenticated:
		case g == user.AllAuthenticated || atHome && strings.HasPrefix(g, systemPrefix):
			out.Groups = append(out.Groups, g)
		default:
			out.Groups = append(out.Groups, nameIn(g, c.Groups, c.GroupPrefix))
		}
	}
	return out
}

// systemPrefix is the prefix of names that Kubernetes itself gives.
const systemPrefix = "system:"

// reservedPrefix is the prefix of names that only the daemon gives.
const reservedPrefix = "mirador:"

func nameIn(name string, names map[string]string, prefix string) string {
	if mapped, ok := names[name]; ok {
		return mapped
	}
	return prefix + name
}
