package cli

import (
	"context"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// completer returns the completions of a command line.
type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// complete registers the completion of a flag. It fails only if a flag is registered twice.
func complete(cmd *cobra.Command, flag string, f completer) {
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc(flag, f))
}

const (
	// completionTime bounds how long a completion may take.
	completionTime = time.Second
	// probeTime bounds the check for a daemon in a completion.
	probeTime = 300 * time.Millisecond
)

// asking calls f with a session if a daemon answers. Completion never mirrors a cluster itself, because that would
// take too long.
func (d *daemonFlags) asking(cmd *cobra.Command, f func(context.Context, *session) []string) ([]string,
	cobra.ShellCompDirective) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	s, _, err := d.session(io.Discard)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer s.close()
	if !s.answers(ctx, probeTime) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f(ctx, s), cobra.ShellCompDirectiveNoFileComp
}

// starting returns the values with the prefix that the user has typed, each once.
func starting(all []string, prefix string) []string {
	all = slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, prefix) })
	slices.Sort(all)
	return slices.Compact(all)
}

func (r *readFlags) completeClusters(cmd *cobra.Command, _ []string, prefix string) ([]string,
	cobra.ShellCompDirective) {
	return r.asking(cmd, func(ctx context.Context, s *session) (all []string) {
		report, err := s.report(ctx, false)
		if err != nil {
			return nil
		}
		for _, c := range report.Clusters {
			all = append(all, c.Name)
		}
		return starting(all, prefix)
	})
}

// completeContexts completes the contexts of the kubeconfig.
func (k *kubeFlags) completeContexts(_ *cobra.Command, _ []string, prefix string) ([]string,
	cobra.ShellCompDirective) {
	cfg, err := loadKubeconfig(k.path())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return starting(slices.Collect(maps.Keys(cfg.Contexts)), prefix), cobra.ShellCompDirectiveNoFileComp
}

var namespaces = &mapping{gvr: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"},
	singular: "namespace"}

func (r *readFlags) completeNamespaces(cmd *cobra.Command, _ []string, prefix string) ([]string,
	cobra.ShellCompDirective) {
	return r.asking(cmd, func(ctx context.Context, s *session) []string {
		return starting(s.names(ctx, &ask{mapping: namespaces, path: resourcePath("/fleet", namespaces, ""),
			params: url.Values{}}), prefix)
	})
}

// completeResources completes the names of resources.
func (d *daemonFlags) completeResources(cmd *cobra.Command, _ []string, prefix string) ([]string,
	cobra.ShellCompDirective) {
	return d.asking(cmd, func(ctx context.Context, s *session) (all []string) {
		cat, err := s.catalog(ctx, "/fleet")
		if err != nil {
			return nil
		}
		count := map[string]int{}
		lines := cat.resources()
		for _, l := range lines {
			count[l.Name]++
		}
		for _, l := range lines {
			name := l.Name
			if count[name] > 1 && groupOf(l.APIVersion) != "" { // another group has a resource of this name
				name += "." + groupOf(l.APIVersion)
			}
			all = append(all, name)
		}
		return starting(all, prefix)
	})
}

// completeObjects completes resources, and then names of objects.
func (c *readCommand) completeObjects(cmd *cobra.Command, args []string, prefix string) ([]string,
	cobra.ShellCompDirective) {
	if len(args) == 0 {
		return c.completeResources(cmd, args, prefix)
	}
	return c.asking(cmd, func(ctx context.Context, s *session) []string {
		return c.otherNames(ctx, s, args, prefix)
	})
}

// otherNames returns the names of objects, without those that are already on the command line.
func (c *readCommand) otherNames(ctx context.Context, s *session, args []string, prefix string) (all []string) {
	asks, err := c.resolve(ctx, s, []wanted{{resource: args[0]}})
	if err != nil || len(asks) != 1 {
		return nil
	}
	all = slices.DeleteFunc(s.names(ctx, asks[0]), func(n string) bool { return slices.Contains(args[1:], n) })
	return starting(all, prefix)
}

// completeObjects is the same for commands that write. It uses the daemon if that mirrors the cluster.
func (d *directFlags) completeObjects(cmd *cobra.Command, args []string, prefix string) ([]string,
	cobra.ShellCompDirective) {
	return d.reader().completeObjects(cmd, args, prefix)
}

// reader returns a command that reads the cluster of these flags.
func (d *directFlags) reader() *readCommand {
	c := &readCommand{}
	c.namespace = d.namespace
	cluster := d.cluster
	if context, _, err := d.choose(); err == nil && cluster == "" {
		cluster = context // usually the cluster's name in a fleet
	}
	if cluster != "" {
		c.clusters = []string{cluster}
	}
	return c
}

// mostNames is the maximum number of completions.
const mostNames = 1000

// names returns the names of the selected objects.
func (s *session) names(ctx context.Context, a *ask) (all []string) {
	found, err := s.list(ctx, a, acceptMetadata, mostNames)
	if err != nil {
		return nil
	}
	for _, m := range found.metas() {
		all = append(all, m.ownName())
	}
	return all
}
