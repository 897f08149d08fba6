package structures

import (
	"fmt"
	"strings"

	"github.com/mirador-k8s/mirador/dev/bench/harness"
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
	runs, stolen := 0, 0.0
	for _, r := range rows {
		runs, stolen = max(runs, r.Runs), max(stolen, r.Stolen)
	}
	return fmt.Sprintf(`# What a store could be made of

50,000 keys, two indexes, each candidate in a process of its own, the candidates in turn; medians of up to %d runs. Every
update is a new state of a random object, and one in ten moves it in an index. Written by `+"`go run ./cmd/structures`"+` on %s, %s, %d cores,
of which the host gave up to %.0f%% to others during a trial that counts.

%s
Readers of the map under a lock, of sync.Map and of client-go's indexer see no single moment over several reads; those of
the others do. The map's readers keep the writer waiting while they iterate.
Compare within the table only: what else the machine and its host do makes all of it several times slower at some hours than at others.

Nobody reads beside the updates one at a time and by 100: what is copied or cut only when a reader asks is at its best there, and
as slow as what is published per batch if somebody asks after each. Our store does more than the work asks for:
it deletes, knows its version, and finds a key in a snapshot too. Its readers give way to an open batch, which is part of its last figure.
`, runs, m.Go, m.Platform, m.Cores, 100*stolen, Table(rows))
}
