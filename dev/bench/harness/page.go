package harness

import (
	"fmt"
	"strings"
)

// page returns the Markdown page.
func page(rows []Result, m Machine) string {
	var b strings.Builder
	met, open, without := 0, 0, 0
	for _, r := range rows {
		switch {
		case r.Met == nil:
			without++
		case *r.Met:
			met++
		default:
			open++
		}
	}
	fmt.Fprintf(&b, `# Measurements against client-go

Both sides run on the same inputs in the same rounds, each trial in its own process, the sides in turn. The figures are
medians of the rounds, which may come from several runs. A ratio is ours over client-go's, so less is better, except
where the goal says "≥"; it is the median of the ratios of the rounds, in which both sides ran within a minute, and
not the ratio of the two medians. Written by
`+"`make bench`"+`; the same rows are in [results.json](results.json), and their trials in [trials.jsonl](trials.jsonl).

%d goals met, %d not met, %d rows without a goal.

`, met, open, without)
	fmt.Fprintf(&b, "%s, %s, %d cores", m.Go, m.Platform, m.Cores)
	if m.Processor != "" {
		fmt.Fprintf(&b, " (%s)", m.Processor)
	}
	if m.MemoryGiB > 0 {
		fmt.Fprintf(&b, ", %d GiB of memory", m.MemoryGiB)
	}
	b.WriteString(".\n\n![ratios against goals](ratios.svg)\n\n")
	table(&b, rows, func(r *Result) bool { return r.Objects == 0 })
	b.WriteString("\nThe spread is half the distance between the smallest and the largest repetition, as a share of " +
		"the median, of ours and of client-go's; next to a ratio it is that of the rounds. Stolen is the share of CPU " +
		"time that the host gave to others during a round: rounds above " + percent(calmShare) + " count only if there " +
		"are no others. It is 0% if the figure does not depend on it: memory, counts, and CPU time.\n")
	if plots := growthPlots(rows); len(plots) > 0 {
		b.WriteString("\n## How costs grow\n\n")
		for _, p := range plots {
			fmt.Fprintf(&b, "![%s](%s)\n", p.title, p.file)
		}
		b.WriteString("\n")
		table(&b, rows, func(r *Result) bool { return r.Objects > 0 })
	}
	return b.String()
}

func table(b *strings.Builder, rows []Result, which func(*Result) bool) {
	b.WriteString("| case | layout | ours | client-go | ratio | goal | met | spread | runs | stolen " +
		"|\n|---|---|---:|---:|---:|---:|---|---:|---:|---:|\n")
	for _, r := range rows {
		if which(&r) {
			fmt.Fprintf(b, "| %s |\n", strings.Join(r.cells(), " | "))
		}
	}
}
