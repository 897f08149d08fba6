package members

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// Provider is a credential plugin for ClusterProfile objects, in the form of sigs.k8s.io/cluster-inventory-api.
type Provider struct {
	// Name is that of the access providers it is for.
	Name string `json:"name"`
	// ExecConfig is the plugin.
	ExecConfig *api.ExecConfig `json:"execConfig"`
	// ArgsPolicy and EnvPolicy say whether a profile may add arguments (Append, Ignore) and environment variables
	// (AppendIfNotExists, Replace, Ignore). The default is Ignore.
	ArgsPolicy string `json:"profileSourcedCLIArgsPolicy"`
	EnvPolicy  string `json:"profileSourcedEnvVarsPolicy"`
}

const (
	argsExtension = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
	envExtension  = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"
)

// ParseProviders reads a provider file, in JSON or YAML: {"providers": [{"name": …, "execConfig": {…}}]}.
func ParseProviders(b []byte) ([]Provider, error) {
	var file struct {
		Providers []Provider `json:"providers"`
	}
	if err := yaml.UnmarshalStrict(b, &file); err != nil {
		return nil, fmt.Errorf("it is not a file of providers; write it as in {\"providers\": [{\"name\": …, "+
			"\"execConfig\": {\"apiVersion\": …, \"command\": …}}]}: %w", err)
	}
	for _, p := range file.Providers {
		switch {
		case p.Name == "" || p.ExecConfig == nil || p.ExecConfig.Command == "" || p.ExecConfig.APIVersion == "":
			return nil, fmt.Errorf("the provider %q needs a name, and an execConfig with apiVersion and command", p.Name)
		case !slices.Contains([]string{"", "Ignore", "Append"}, p.ArgsPolicy):
			return nil, fmt.Errorf("provider %s: profileSourcedCLIArgsPolicy is Append or Ignore, not %q", p.Name, p.ArgsPolicy)
		case !slices.Contains([]string{"", "Ignore", "AppendIfNotExists", "Replace"}, p.EnvPolicy):
			return nil, fmt.Errorf("provider %s: profileSourcedEnvVarsPolicy is AppendIfNotExists, Replace or Ignore, not %q",
				p.Name, p.EnvPolicy)
		}
	}
	return file.Providers, nil
}

// access returns how a cluster is reached with the plugin.
func (p *Provider) access(a *accessProvider) (access, error) {
	exec := p.ExecConfig.DeepCopy()
	exec.InteractiveMode = api.NeverExecInteractiveMode
	if p.ArgsPolicy == "Append" {
		var more []string
		if _, err := a.extension(argsExtension, &more); err != nil {
			return access{}, err
		}
		exec.Args = append(exec.Args, more...)
	}
	if p.EnvPolicy == "AppendIfNotExists" || p.EnvPolicy == "Replace" {
		var more map[string]string
		if _, err := a.extension(envExtension, &more); err != nil {
			return access{}, err
		}
		exec.Env = withEnv(exec.Env, more, p.EnvPolicy == "Replace")
	}
	return access{cluster: a.Cluster, exec: exec}, nil
}

// withEnv adds variables, in the order of their names, and replaces existing ones if it may.
func withEnv(env []api.ExecEnvVar, more map[string]string, replace bool) []api.ExecEnvVar {
	for _, name := range slices.Sorted(maps.Keys(more)) {
		i := slices.IndexFunc(env, func(v api.ExecEnvVar) bool { return v.Name == name })
		switch {
		case i < 0:
			env = append(env, api.ExecEnvVar{Name: name, Value: more[name]})
		case replace:
			env[i].Value = more[name]
		}
	}
	return env
}
