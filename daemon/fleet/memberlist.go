package fleet

import (
	"context"
	"errors"
	"slices"

	"k8s.io/client-go/tools/clientcmd/api"
)

// MemberList has the kubeconfigs of members that are not files on this machine.
type MemberList interface {
	// Versions returns what exists by name: each version changes when the kubeconfig does. If it fails, all clusters stay
	// as they are.
	Versions() (map[string]string, error)
	// Read returns one. If it fails, its cluster stays as it is.
	Read(name string) (Member, error)
}

// Member is a cluster of a MemberList.
type Member struct {
	// Cluster is the name, which is converted to a DNS label.
	Cluster string
	// Kubeconfig is checked like that of JoinKubeconfig: its current context is used, and it can neither run nor read
	// anything on this machine.
	Kubeconfig []byte
	// Exec is a credential plugin that the operator has chosen; nil if the kubeconfig has the credentials.
	Exec *api.ExecConfig
}

// FollowMembers joins the clusters of a list, before or during Run. Follower.Run then follows the list, as FollowFolder
// does with a folder; call Check when it has changed. The kind is that of their Origin.
func (f *Fleet) FollowMembers(kind string, list MemberList) (*Follower, error) {
	w := newFollower(f, kind)
	var versions map[string]string
	w.paths = func() (names []string, err error) {
		if versions, err = list.Versions(); err != nil {
			return nil, err
		}
		for name := range versions {
			names = append(names, name)
		}
		slices.Sort(names) // so that the same of two members of one name joins after a restart
		return names, nil
	}
	w.stampOf = func(name string) (stamp, error) { return stamp{version: versions[name]}, nil }
	w.read = func(name string) (map[string]kubeContext, error) {
		m, err := list.Read(name)
		if err != nil {
			return nil, err
		}
		return m.context()
	}
	if err := w.check(context.Background()); err != nil {
		return nil, err
	}
	return w, nil
}

// context returns the context that a member uses, by the name of its cluster.
func (m *Member) context() (map[string]kubeContext, error) {
	one, err := checkedContext(m.Kubeconfig, "")
	if err != nil {
		return nil, err
	}
	if m.Exec != nil {
		chosen := one.Contexts[one.CurrentContext]
		user := one.AuthInfos[chosen.AuthInfo]
		if user == nil {
			return nil, errors.New("the context of the kubeconfig names no user; a credential plugin needs one")
		}
		user.Exec = m.Exec.DeepCopy()
	}
	c, err := newContext(one)
	if err != nil {
		return nil, err
	}
	return byCluster([]kubeContext{c}, func(string) string { return dnsLabel(m.Cluster) })
}
