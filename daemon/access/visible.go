package access

import (
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/object"
)

// Visible returns the objects of a resource for which a user has a verb: all of them if Decide allows the verb at
// cluster scope, those of each namespace in which Decide allows it, and those for whose names Decide allows it.
// Objects of a resource that is not namespaced have no namespace, so that a RoleBinding gives no right to them, except
// to get the Namespace object of its own namespace: in Kubernetes, that request has a namespace, and a list by name
// has none. Equal sets have the same pointer; the caller must not change them.
func (r *RBAC) Visible(u user.Info, verb, group, resource, subresource string, namespaced bool) *query.Visible {
	a := Attributes{ResourceRequest: true, Verb: verb, APIGroup: group, Resource: resource, Subresource: subresource}
	ofNamespaces := !namespaced && verb == "get" && group == "" && resource == "namespaces"
	v := &query.Visible{}
	names := map[*ruleSet]nameSet{}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for s := range r.subjectsOf(u) {
		for _, b := range s.bindings {
			set := b.role.set
			if set == nil {
				continue
			}
			if b.namespace != "" && !namespaced && !ofNamespaces {
				break
			}
			allowed, ok := names[set]
			if !ok {
				if allowed = set.names(&a); b.role.bindings > 1 { // it may be needed again
					names[set] = allowed
				}
			}
			switch {
			case b.namespace == "":
				if allowed.unnamed {
					return r.sets.share(&query.Visible{All: true})
				}
				v.Names = append(v.Names, allowed.names...)
			case ofNamespaces:
				if allowed.every || slices.Contains(allowed.names, b.namespace) {
					v.Names = append(v.Names, b.namespace)
				}
			case allowed.unnamed:
				v.Namespaces = append(v.Namespaces, b.namespace)
			default:
				for _, name := range allowed.names {
					v.Keys = append(v.Keys, object.NewKey(b.namespace, name))
				}
			}
		}
	}
	simplify(v)
	return r.sets.share(v)
}

// simplify sorts a set, and removes from each field what is repeated or in another field as well.
func simplify(v *query.Visible) {
	v.Names = sorted(v.Names)
	v.Namespaces = sorted(v.Namespaces)
	if others := (&query.Visible{Namespaces: v.Namespaces, Names: v.Names}); !others.Empty() {
		v.Keys = slices.DeleteFunc(v.Keys, others.Contains)
	}
	v.Keys = sorted(v.Keys)
}

func sorted[S ~string](list []S) []S {
	slices.Sort(list)
	return slices.Clip(slices.Compact(list))
}

// A nameSet is the set of names for which rules allow a request.
type nameSet struct {
	every   bool // every name; the others are not listed
	unnamed bool // a request without a name
	names   []string
}

// names returns the names for which one of the rules allows a request.
func (s *ruleSet) names(a *Attributes) (allowed nameSet) {
	for i := range s.rules {
		rule := &s.rules[i]
		if !allowsAnyName(rule, a) {
			continue
		}
		if len(rule.ResourceNames) == 0 {
			return nameSet{every: true, unnamed: true}
		}
		if allowed.names == nil && !slices.Contains(rule.ResourceNames, "") {
			allowed.names = slices.Clip(rule.ResourceNames) // usually it is the only rule, and nothing is copied
			continue
		}
		for _, name := range rule.ResourceNames {
			if name == "" {
				allowed.unnamed = true
			} else {
				allowed.names = append(allowed.names, name)
			}
		}
	}
	return allowed
}
