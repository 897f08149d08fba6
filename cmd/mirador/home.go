package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/members"
)

// defaultHome is the name of the home cluster if it is mirrored without --home.
const defaultHome = "home"

// homeFlags are the flags about the home cluster: the one that the daemon runs in as a pod.
type homeFlags struct {
	name      string
	secrets   string
	profiles  bool
	providers string
	namespace string

	account string // the folder with the pod's service account
}

func (h *homeFlags) add(flags *pflag.FlagSet) {
	h.account = members.ServiceAccountFolder
	flags.StringVar(&h.name, "home", "",
		"`name` under which the cluster of this pod is mirrored, with the pod's service account (default: home, in a pod "+
			"in which no other cluster is named)")
	flags.StringVar(&h.secrets, "member-secrets", "",
		"label `selector` of Secrets with kubeconfigs in the cluster of this pod, such as mirador.dev/member=true; a Secret "+
			"added or removed is a cluster joining or leaving")
	flags.BoolVar(&h.profiles, "member-profiles", false,
		"mirror the clusters of the ClusterProfile objects in the cluster of this pod")
	flags.StringVar(&h.providers, "clusterprofile-provider-file", "",
		"`file` with credential plugins for ClusterProfile objects, as sigs.k8s.io/cluster-inventory-api reads it")
	flags.StringVar(&h.namespace, "member-namespace", "",
		"`namespace` of the Secrets and ClusterProfile objects (default: that of the pod)")
}

// follows reports whether members are found in the home cluster.
func (h *homeFlags) follows() bool { return h.secrets != "" || h.profiles }

// config returns how the home cluster is reached, and the pod's namespace.
func (h *homeFlags) config() (*rest.Config, string, error) {
	return members.InPod(os.Getenv, h.account)
}

// join joins the home cluster if --home says so, or if nothing else says which clusters to mirror. others says that
// other flags do.
func (h *homeFlags) join(fl *fleet.Fleet, others bool) (joined bool, err error) {
	name := h.name
	if name == "" {
		if others || h.follows() || hasKubeconfig() {
			return false, nil
		}
		name = defaultHome
	}
	cfg, _, err := h.config()
	switch {
	case errors.Is(err, members.ErrNoPod) && h.name == "":
		return false, nil
	case err != nil:
		return false, fmt.Errorf("--home: %w", err)
	}
	if err := fl.Join(name, cfg, fleet.Origin{Kind: fleet.FromHome, Detail: cfg.Host}); err != nil {
		return false, fmt.Errorf("--home: %w", err)
	}
	return true, nil
}

// hasKubeconfig reports whether there is a kubeconfig at one of the usual places.
func hasKubeconfig() bool {
	_, err := os.Stat(clientcmd.NewDefaultClientConfigLoadingRules().GetDefaultFilename())
	return err == nil
}

// members returns what finds members in the home cluster, or nil.
func (h *homeFlags) members(fl *fleet.Fleet, log *slog.Logger) (*members.Members, error) {
	if !h.follows() {
		if h.namespace != "" || h.providers != "" {
			return nil, errors.New("--member-namespace and --clusterprofile-provider-file are for --member-secrets and " +
				"--member-profiles; give one of these, too")
		}
		return nil, nil
	}
	o := members.Options{Namespace: h.namespace, Secrets: h.secrets, Profiles: h.profiles, Logger: log}
	var own string
	var err error
	if o.Config, own, err = h.config(); err != nil {
		return nil, fmt.Errorf("--member-secrets and --member-profiles: %w", err)
	}
	if o.Namespace == "" {
		o.Namespace = own
	}
	if o.Namespace == "" {
		return nil, errors.New("the namespace of the pod is not known; name one with --member-namespace")
	}
	if h.providers != "" {
		b, err := os.ReadFile(h.providers)
		if err != nil {
			return nil, fmt.Errorf("read the file of --clusterprofile-provider-file: %w", plainFileError(err))
		}
		if o.Providers, err = members.ParseProviders(b); err != nil {
			return nil, fmt.Errorf("the provider file %s: %w", h.providers, err)
		}
	}
	found, err := members.New(fl, o)
	if err != nil {
		return nil, fmt.Errorf("--member-secrets and --member-profiles: %w", err)
	}
	return found, nil
}
