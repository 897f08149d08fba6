package harness

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// WriteTable prints the rows for a terminal.
func WriteTable(w io.Writer, rows []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CASE\tLAYOUT\tOURS\tCLIENT-GO\tRATIO\tGOAL\tMET\tSPREAD\tRUNS\tSTOLEN")
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r.cells(), "\t"))
	}
	return t.Flush()
}

// Title returns the name of the case with its size.
func (r *Result) Title() string {
	if r.Objects > 0 {
		return fmt.Sprintf("%s, %s objects", r.Case, thousands(r.Objects))
	}
	return r.Case
}

func (r *Result) cells() []string {
	peer, ratio, met := "–", "–", ""
	spread := spreadOf(r.Spread.Ours, r.Runs)
	if r.Peer != nil {
		peer = quantity(*r.Peer, r.Unit)
		spread += " / " + spreadOf(r.Spread.Peer, r.Runs)
	}
	if r.Ratio != nil {
		ratio = Number(*r.Ratio) + "x"
		if s := r.Spread.Ratio; s != nil {
			ratio += " ±" + percent(*s)
		}
	}
	if r.Met != nil {
		met = map[bool]string{true: "met", false: "not met"}[*r.Met]
	}
	return []string{r.Title(), r.Layout, quantity(r.Ours, r.Unit), peer, ratio, r.goal().String(), met, spread,
		fmt.Sprint(r.Runs), percent(r.Stolen)}
}

// spreadOf formats a spread; it is empty for a single run.
func spreadOf(share float64, runs int) string {
	if runs < 2 {
		return "–"
	}
	return "±" + percent(share)
}

func (r *Result) goal() Goal {
	if r.Goal == nil {
		return Goal{}
	}
	return Goal{r.GoalOf, *r.Goal}
}

func quantity(v float64, unit string) string {
	if unit == "" {
		return Number(v)
	}
	return Number(v) + " " + unit
}

// Number formats a value with three significant digits.
func Number(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a >= 1e15 || a < 1e-4:
		return fmt.Sprintf("%.2e", v)
	case a >= 100:
		return thousands(int(math.Round(v)))
	default:
		decimals := 2 - int(math.Floor(math.Log10(a)))
		return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.*f", decimals, v), "0"), ".")
	}
}

func thousands(n int) string {
	if n < 0 {
		return "-" + thousands(-n)
	}
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", share*100) }
