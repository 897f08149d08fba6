package access

import (
	"hash/maphash"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// A ruleSet is the list of rules of one role, or of several roles with equal rules. The rules never change.
type ruleSet struct {
	rules []rbacv1.PolicyRule
	roles int // how many roles have these rules
	hash  uint64
}

// ruleSets stores each list of rules once.
type ruleSets struct {
	seed   maphash.Seed
	byHash map[uint64][]*ruleSet
}

// use returns the set with the given rules, and counts one role more for it.
func (s *ruleSets) use(rules []rbacv1.PolicyRule) *ruleSet {
	hash := s.hash(rules)
	for _, set := range s.byHash[hash] {
		if slices.EqualFunc(set.rules, rules, equalRules) {
			set.roles++
			return set
		}
	}
	set := &ruleSet{rules: compactRules(rules), roles: 1, hash: hash}
	s.byHash[hash] = append(s.byHash[hash], set)
	return set
}

// release counts one role less for a set, and forgets the set with its last role.
func (s *ruleSets) release(set *ruleSet) {
	if set.roles--; set.roles > 0 {
		return
	}
	rest := slices.DeleteFunc(s.byHash[set.hash], func(other *ruleSet) bool { return other == set })
	if len(rest) == 0 {
		delete(s.byHash, set.hash)
	} else {
		s.byHash[set.hash] = rest
	}
}

func (s *ruleSets) hash(rules []rbacv1.PolicyRule) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for i := range rules {
		for _, list := range lists(&rules[i]) {
			for _, value := range *list {
				h.WriteString(value)
				h.WriteByte(0)
			}
			h.WriteByte(1)
		}
	}
	return h.Sum64()
}

// lists returns the fields of a rule.
func lists(rule *rbacv1.PolicyRule) [5]*[]string {
	return [...]*[]string{&rule.Verbs, &rule.APIGroups, &rule.Resources, &rule.ResourceNames, &rule.NonResourceURLs}
}

func equalRules(a, b rbacv1.PolicyRule) bool {
	as, bs := lists(&a), lists(&b)
	for i := range as {
		if !slices.Equal(*as[i], *bs[i]) {
			return false
		}
	}
	return true
}

// compactRules copies rules into three allocations: the rules, their values, and the bytes of the values. Empty lists
// become nil.
func compactRules(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var values, size int
	seen := map[string]int{} // value to its position in bytes
	var bytes strings.Builder
	for i := range rules {
		for _, list := range lists(&rules[i]) {
			values += len(*list)
			for _, value := range *list {
				if _, ok := seen[value]; !ok {
					seen[value] = size
					size += len(value)
					bytes.WriteString(value)
				}
			}
		}
	}
	text := strings.Clone(bytes.String())
	all := make([]string, 0, values)
	compact := make([]rbacv1.PolicyRule, len(rules))
	for i := range rules {
		to := lists(&compact[i])
		for j, list := range lists(&rules[i]) {
			if len(*list) == 0 {
				continue
			}
			first := len(all)
			for _, value := range *list {
				start := seen[value]
				all = append(all, text[start:start+len(value)])
			}
			*to[j] = slices.Clip(all[first:])
		}
	}
	return compact
}

// allows reports whether a rule allows a request.
func allows(rule *rbacv1.PolicyRule, a *Attributes) bool {
	if !a.ResourceRequest {
		return includes(rule.Verbs, a.Verb) && includesPath(rule.NonResourceURLs, a.Path)
	}
	return allowsAnyName(rule, a) && (len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.Name))
}

// allowsAnyName reports whether a rule allows a request for a resource for at least one name, whatever the name in the
// request is.
func allowsAnyName(rule *rbacv1.PolicyRule, a *Attributes) bool {
	return includes(rule.Verbs, a.Verb) && includes(rule.APIGroups, a.APIGroup) &&
		includesResource(rule.Resources, a.Resource, a.Subresource)
}

// includes reports whether a list has a value or the wildcard.
func includes(list []string, value string) bool {
	for _, v := range list {
		if v == value || v == "*" {
			return true
		}
	}
	return false
}

// includesResource reports whether a list has a resource, its subresource, the subresource of all resources
// ("*/scale") or the wildcard. The wildcard has all subresources; the name of a resource has none, and "pods/*" has
// no meaning.
func includesResource(list []string, resource, subresource string) bool {
	for _, v := range list {
		if v == "*" {
			return true
		}
		if subresource == "" {
			if v == resource {
				return true
			}
			continue
		}
		if parent, ok := strings.CutSuffix(v, subresource); ok && strings.HasSuffix(parent, "/") {
			if parent = parent[:len(parent)-1]; parent == resource || parent == "*" {
				return true
			}
		}
	}
	return false
}

// includesPath reports whether a list has a path, or a prefix of it followed by the wildcard.
func includesPath(list []string, path string) bool {
	for _, v := range list {
		if v == path {
			return true
		}
		if prefix := strings.TrimRight(v, "*"); len(prefix) < len(v) && strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
