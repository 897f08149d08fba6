package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/access"
)

// reservedPrefix begins the names of users and groups that only the daemon itself gives.
const reservedPrefix = "mirador:"

// impersonate replaces the user of a request by the one that its headers name, as kubectl --as sends them, if the user
// may impersonate it. As at an API server, that needs the verb impersonate on the user, on each group and on each extra
// value; they are rights in the daemon itself.
func (s *Server) impersonate(r *http.Request) error {
	rec := recordOf(r)
	if rec == nil || rec.user == nil || rec.user == noUser {
		return nil
	}
	other, err := impersonatedUser(r.Header)
	if err != nil || other == nil {
		return err
	}
	needed := impersonationRights(other)
	for _, want := range needed {
		if err := s.allow(r, access.Daemon, want); err != nil {
			return err
		}
		if strings.HasPrefix(want.Name, reservedPrefix) {
			return forbidden(rec.user, want, fmt.Sprintf("names that begin with %q are reserved for the daemon",
				reservedPrefix))
		}
	}
	rec.actor, rec.user, rec.impersonation = rec.user, completeUser(other), needed
	for name := range r.Header {
		if strings.HasPrefix(name, impersonatePrefix) {
			r.Header.Del(name)
		}
	}
	return nil
}

// stillImpersonates reports whether the user that sent a request may still impersonate the one that it names.
func (s *Server) stillImpersonates(r *http.Request) bool {
	rec := recordOf(r)
	if rec == nil || rec.actor == nil {
		return true
	}
	for _, want := range rec.impersonation {
		d, err := s.opts.Authorizer.Decide(r.Context(), rec.actor, access.Daemon, want)
		if err != nil || !d.Allowed {
			return false
		}
	}
	return true
}

// impersonatePrefix begins the names of all headers of impersonation.
const impersonatePrefix = "Impersonate-"

// impersonatedUser returns the user that headers name, nil if they name none.
func impersonatedUser(h http.Header) (*user.DefaultInfo, error) {
	u := &user.DefaultInfo{Name: h.Get(authenticationv1.ImpersonateUserHeader),
		UID: h.Get(authenticationv1.ImpersonateUIDHeader), Groups: h.Values(authenticationv1.ImpersonateGroupHeader)}
	for name, values := range h {
		key, ok := strings.CutPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix)
		if !ok {
			continue
		}
		key, err := url.PathUnescape(strings.ToLower(key))
		if err != nil {
			return nil, apierrors.NewBadRequest("the name of a header of impersonation is not valid: " + clip(name))
		}
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[key] = append(u.Extra[key], values...)
	}
	for name := range h {
		switch {
		case !strings.HasPrefix(name, impersonatePrefix):
		case u.Name == "":
			return nil, apierrors.NewBadRequest("the headers of impersonation name no user; send " +
				authenticationv1.ImpersonateUserHeader)
		case !isImpersonation(name):
			return nil, apierrors.NewBadRequest("a header of impersonation is not known: " + clip(name))
		}
	}
	if u.Name == "" {
		return nil, nil
	}
	return u, nil
}

// isImpersonation reports whether a header is known.
func isImpersonation(name string) bool {
	return name == authenticationv1.ImpersonateUserHeader || name == http.CanonicalHeaderKey(
		authenticationv1.ImpersonateUIDHeader) || name == authenticationv1.ImpersonateGroupHeader ||
		strings.HasPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix)
}

// impersonationRights returns the rights that are needed to impersonate a user.
func impersonationRights(u *user.DefaultInfo) []access.Attributes {
	needed := access.Attributes{ResourceRequest: true, Verb: "impersonate", APIVersion: "v1", Resource: "users",
		Name: u.Name}
	if namespace, name, err := serviceaccount.SplitUsername(u.Name); err == nil {
		needed.Resource, needed.Namespace, needed.Name = "serviceaccounts", namespace, name
	}
	all := []access.Attributes{needed}
	for _, group := range u.Groups {
		all = append(all, access.Attributes{ResourceRequest: true, Verb: "impersonate", APIVersion: "v1",
			Resource: "groups", Name: group})
	}
	identity := access.Attributes{ResourceRequest: true, Verb: "impersonate", APIGroup: authenticationv1.GroupName,
		APIVersion: "v1"}
	for _, key := range slices.Sorted(maps.Keys(u.Extra)) {
		for _, value := range u.Extra[key] {
			identity.Resource, identity.Subresource, identity.Name = "userextras", key, value
			all = append(all, identity)
		}
	}
	if u.UID != "" {
		identity.Resource, identity.Subresource, identity.Name = "uids", "", u.UID
		all = append(all, identity)
	}
	return all
}

// completeUser adds the groups that every such user has.
func completeUser(u *user.DefaultInfo) *user.DefaultInfo {
	out := *u
	out.Groups = slices.Clone(u.Groups)
	if namespace, _, err := serviceaccount.SplitUsername(u.Name); err == nil && len(out.Groups) == 0 {
		out.Groups = serviceaccount.MakeGroupNames(namespace)
	}
	group := user.AllAuthenticated
	if u.Name == user.Anonymous {
		group = user.AllUnauthenticated
	}
	if !slices.Contains(out.Groups, group) {
		out.Groups = append(out.Groups, group)
	}
	return &out
}
