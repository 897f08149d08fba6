package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newAPIResources() *cobra.Command {
	var (
		r        readFlags
		o        outputFlags
		clusters []string
	)
	cmd := &cobra.Command{
		Use:   "api-resources",
		Short: "Show the resources that can be read",
		Long: `Show which resources a daemon mirrors, in one cluster or in any; or, with --kubeconfig or --context, and
where no daemon runs, which a cluster itself has.`,
		Example: `  mirador api-resources
  mirador api-resources --cluster eu -o wide
  mirador api-resources -o name`,
		Args: takes(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.parse(); err != nil {
				return err
			}
			if len(clusters) > 1 {
				return usagef("api-resources shows one cluster or all; give --cluster once")
			}
			s, err := r.open(cmd.Context(), need{nothing: true}, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer s.close()
			lists, err := served(cmd.Context(), s, &selectFlags{clusters: clusters})
			if err != nil {
				return err
			}
			return showResources(cmd.OutOrStdout(), &o, lists)
		},
	}
	r.add(cmd)
	o.add(cmd, asTemplate, asColumns)
	cmd.Flags().StringSliceVar(&clusters, "cluster", nil, "`cluster` to read (default: all)")
	complete(cmd, "cluster", r.completeClusters)
	return cmd
}

// served returns the discovery of the daemon or of the cluster itself.
func served(ctx context.Context, s *session, f *selectFlags) ([]resourceLine, error) {
	var (
		cat *catalog
		err error
	)
	if s.cluster != nil {
		dc, release, derr := clusterDiscovery(s.cluster)
		if derr != nil {
			return nil, derr
		}
		defer release()
		if cat, err = readCatalog(ctx, dc); err != nil {
			return nil, fmt.Errorf("ask the cluster what it serves: %w", ofCluster(err))
		}
	} else {
		prefix, _, _, perr := f.prefix(s)
		if perr != nil {
			return nil, perr
		}
		if cat, err = s.catalog(ctx, prefix); err != nil {
			return nil, err
		}
	}
	return cat.resources(), nil
}

// resourceLine is one line of the output.
type resourceLine struct {
	Name       string   `json:"name"`
	ShortNames []string `json:"shortNames,omitempty"`
	APIVersion string   `json:"apiVersion"`
	Namespaced bool     `json:"namespaced"`
	Kind       string   `json:"kind"`
	Verbs      []string `json:"verbs"`
}

// resources returns the resources that can be listed, sorted by group and name. Of several versions of a resource
// only the first is shown, which is the server's preferred one.
func (c *catalog) resources() (out []resourceLine) {
	seen := map[string]bool{}
	for _, list := range c.lists {
		group, _, _ := strings.Cut(list.GroupVersion, "/")
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || seen[group+"/"+r.Name] {
				continue
			}
			seen[group+"/"+r.Name] = true
			out = append(out, lineOf(list.GroupVersion, r))
		}
	}
	slices.SortStableFunc(out, func(a, b resourceLine) int {
		if c := strings.Compare(groupOf(a.APIVersion), groupOf(b.APIVersion)); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

func lineOf(groupVersion string, r *metav1.APIResource) resourceLine {
	return resourceLine{Name: r.Name, ShortNames: r.ShortNames, APIVersion: groupVersion, Namespaced: r.Namespaced,
		Kind: r.Kind, Verbs: r.Verbs}
}

// groupOf returns the group of an apiVersion; that of v1 is "".
func groupOf(apiVersion string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

func showResources(w io.Writer, o *outputFlags, all []resourceLine) error {
	if o.form == asName {
		for _, r := range all {
			fmt.Fprintln(w, strings.TrimSuffix(clean(r.Name)+"."+clean(groupOf(r.APIVersion)), "."))
		}
		return nil
	}
	if !o.table() {
		v, err := plain(all)
		if err != nil {
			return err
		}
		return o.document(w, v)
	}
	head := []string{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"}
	if o.form == asWide {
		head = append(head, "VERBS")
	}
	var rows [][]string
	for _, r := range all {
		cells := []string{clean(r.Name), clean(strings.Join(r.ShortNames, ",")), clean(r.APIVersion),
			strconv.FormatBool(r.Namespaced), clean(r.Kind)}
		if o.form == asWide {
			cells = append(cells, clean(strings.Join(r.Verbs, ",")))
		}
		rows = append(rows, cells)
	}
	return writeTable(w, o.noHeaders, head, rows)
}
