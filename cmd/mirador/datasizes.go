package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mirador-k8s/mirador/daemon/disk"
)

// dataSizes is the output of mirador data sizes -o json. Sizes are in bytes.
type dataSizes struct {
	Clusters []dataClusterSize `json:"clusters"`
	Total    dataSize          `json:"total"`
	Files    int64             `json:"files"`
}

type dataClusterSize struct {
	Name string `json:"name"`
	dataSize
	Resources []dataResourceSize `json:"resources"`
}

type dataResourceSize struct {
	Resource string `json:"resource"`
	Group    string `json:"group"`
	Version  string `json:"version"`
	dataSize
}

// dataSize is what a resource, a cluster or the whole folder takes.
type dataSize struct {
	Objects   int   `json:"objects"`
	Changes   int   `json:"changes"`
	State     int64 `json:"state"`
	History   int64 `json:"history"`
	Bases     int64 `json:"bases"`
	Documents int64 `json:"documents"`
}

func (s *dataSize) add(o dataSize) {
	s.Objects += o.Objects
	s.Changes += o.Changes
	s.State += o.State
	s.History += o.History
	s.Bases += o.Bases
	s.Documents += o.Documents
}

func newDataSizes() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "sizes DIR",
		Short: "Show what a data folder has, by cluster and resource",
		Long: `Show what a data folder has. STATE is what the newest states of the objects take, HISTORY what earlier states and
deletions take, BASES the objects that others are stored as differences to, and DOCUMENTS discovery and OpenAPI. Sizes
are estimates; the files as a whole have the size in the last line.`,
		Example: `  mirador data sizes /var/lib/mirador
  mirador data sizes /var/lib/mirador -o json`,
		Args: takesArguments("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return usageError{fmt.Errorf("--output is json, or left out for a table, and not %q", output)}
			}
			return withData(cmd, args[0], nil, func(_ context.Context, d *disk.Disk) error {
				clusters, err := d.Sizes()
				if err != nil {
					return adviseDamage(err)
				}
				sizes := sumSizes(clusters)
				sizes.Files = d.Health().Bytes
				if output == "json" {
					out := json.NewEncoder(cmd.OutOrStdout())
					out.SetIndent("", "  ")
					return out.Encode(sizes)
				}
				return sizes.table(cmd.OutOrStdout())
			})
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output `format`: json (default: a table)")
	return cmd
}

// sumSizes adds up the sizes of resources.
func sumSizes(clusters []disk.ClusterSize) *dataSizes {
	all := &dataSizes{Clusters: []dataClusterSize{}}
	for _, c := range clusters {
		sum := dataClusterSize{Name: c.Name, dataSize: dataSize{Documents: c.Documents}, Resources: []dataResourceSize{}}
		for _, r := range c.Resources {
			of := dataResourceSize{r.Resource.Resource, r.Group, r.Version, dataSize{Objects: r.Objects, Changes: r.Changes,
				State: r.State, History: r.History, Bases: r.Bases}}
			sum.add(of.dataSize)
			sum.Resources = append(sum.Resources, of)
		}
		all.Total.add(sum.dataSize)
		all.Clusters = append(all.Clusters, sum)
	}
	return all
}

// table writes a line for each cluster, with its documents, and one for each of its resources.
func (s *dataSizes) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "CLUSTER\tRESOURCE\tOBJECTS\tCHANGES\tSTATE\tHISTORY\tBASES\tDOCUMENTS")
	line := func(cluster, resource string, d dataSize, documents string) {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", cluster, resource,
			d.Objects, d.Changes, bytesText(d.State), bytesText(d.History), bytesText(d.Bases), documents)
	}
	for _, c := range s.Clusters {
		line(c.Name, "(all)", c.dataSize, bytesText(c.Documents))
		for _, r := range c.Resources {
			name := r.Resource
			if r.Group != "" {
				name += "." + r.Group
			}
			line(c.Name, name, r.dataSize, "-")
		}
	}
	line("(all)", "(all)", s.Total, bytesText(s.Total.Documents))
	fmt.Fprintf(t, "\nall files: %s\n", bytesText(s.Files))
	return t.Flush()
}
