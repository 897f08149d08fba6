package query

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestRulesAllowOnlyWhatTheyList(t *testing.T) {
	rules := Rules{
		{Users: []string{"ann"}, Verbs: []string{"get", "list"}, Clusters: []string{"eu"},
			Resources: []string{"pods", "deployments.apps"}, Namespaces: []string{"web"}},
		{Groups: []string{"ops"}, Verbs: []string{"*"}, Clusters: []string{"*"}, Resources: []string{"*"},
			Namespaces: []string{"*"}},
		{Users: []string{"*"}, Verbs: []string{"list"}, Clusters: []string{"*"}, Resources: []string{"namespaces"},
			Namespaces: []string{"*"}},
		{Users: []string{""}, Groups: []string{""}, Verbs: []string{""}, Clusters: []string{""}, Resources: []string{""},
			Namespaces: []string{""}},
	}
	ann, op, nobody := User{Name: "ann"}, User{Name: "bob", Groups: []string{"dev", "ops"}}, User{}
	for _, c := range []struct {
		user User
		want Attributes
		ok   bool
	}{
		{ann, Attributes{Verb: "list", Cluster: "eu", Resource: "pods", Namespace: "web"}, true},
		{ann, Attributes{Verb: "list", Cluster: "eu", Group: "apps", Resource: "deployments", Namespace: "web"}, true},
		{ann, Attributes{Verb: "list", Cluster: "eu", Group: "extensions", Resource: "deployments", Namespace: "web"},
			false},
		{ann, Attributes{Verb: "list", Cluster: "eu", Group: "metrics.k8s.io", Resource: "pods", Namespace: "web"}, false},
		{ann, Attributes{Verb: "watch", Cluster: "eu", Resource: "pods", Namespace: "web"}, false},
		{ann, Attributes{Verb: "list", Cluster: "us", Resource: "pods", Namespace: "web"}, false},
		{ann, Attributes{Verb: "list", Cluster: "eu", Resource: "pods", Namespace: "other"}, false},
		{ann, Attributes{Verb: "list", Cluster: "eu", Resource: "pods"}, false},
		{ann, Attributes{Verb: "list", Cluster: "us", Resource: "namespaces"}, true},
		{op, Attributes{Verb: "watch", Cluster: "us", Resource: "secrets"}, true},
		{nobody, Attributes{Verb: "list", Cluster: "eu", Resource: "pods"}, false},
		{nobody, Attributes{}, false},
	} {
		err := rules.Authorize(context.Background(), c.user, c.want)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrForbidden) {
			t.Errorf("%+v for %+v gives %v, want %v", c.user, c.want, err, c.ok)
		}
	}
	err := rules.Authorize(context.Background(), ann,
		Attributes{Verb: "list", Cluster: "us", Group: "apps", Resource: "deployments", Namespace: "web"})
	for _, part := range []string{`"ann"`, "list", "deployments.apps", `"web"`, `"us"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not contain %s", err, part)
		}
	}
	if (AllowAll{}).Authorize(context.Background(), nobody, Attributes{}) != nil {
		t.Error("AllowAll refuses")
	}
}
