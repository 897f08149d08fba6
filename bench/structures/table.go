package structures

import (
	"fmt"
	"strings"

	"github.com/mirador-k8s/mirador/bench/harness"
)

// Table gives the rows that the harness measured as a table with a line for each
// candidate, in Markdown.
func Table(rows []harness.Result) string {
	var b strings.Builder
	b.WriteString("| structure |")
	for _, col := range columns {
		fmt.Fprintf(&b, " %s |", col.title)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(columns)) + "\n")
	for _, candidate := range Candidates {
		fmt.Fprintf(&b, "| %s |", candidate.Name)
		for _, col := range columns {
			cell := "–"
			for _, r := range rows {
				if r.Layout == candidate.Name && r.Case == col.title {
					cell = harness.Number(r.Ours)
				}
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Page is the table with what is to be said of it.
func Page(rows []harness.Result, m harness.Machine) string {
	runs := 0
	for _, r := range rows {
		runs = max(runs, r.Runs)
	}
	return fmt.Sprintf(`# What a store could be made of

50,000 keys, two indexes, each candidate in a process of its own, the candidates in turn; medians of %d runs. One
update in ten moves an object in an index. Written by `+"`go run ./cmd/structures`"+` on %s, %s, %d cores.

%s
Readers of the map under a lock, of sync.Map and of client-go's indexer see no single moment over several reads; those of
the others do. The map's readers keep the writer waiting while they iterate.
`, runs, m.Go, m.Platform, m.Cores, Table(rows))
}
