package harness

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// ratioPlot draws the ratios as horizontal bars on a logarithmic scale, with a mark at the goal. A bar to the left of
// 1 is leaner or faster than client-go; for rates, of which more is better, the inverse is drawn.
func ratioPlot(rows []Result) string {
	type bar struct {
		label       string
		ratio, goal float64
		met         *bool
	}
	var bars []bar
	low := 0.1
	for _, r := range rows {
		if r.Ratio == nil || *r.Ratio <= 0 || r.Objects > 0 {
			continue
		}
		b := bar{label: r.Case + label(r.Layout), ratio: *r.Ratio, met: r.Met}
		if r.Goal != nil && !(Goal{Of: r.GoalOf}).ofOurs() {
			b.goal = *r.Goal
		}
		if r.moreIsBetter() {
			b.ratio = 1 / b.ratio
			if b.goal > 0 {
				b.goal = 1 / b.goal
			}
			b.label += ", inverse"
		}
		low = min(low, b.ratio)
		if b.goal > 0 {
			low = min(low, b.goal)
		}
		bars = append(bars, b)
	}
	const left, width, step, top = 560, 520, 18, 40
	low = math.Pow(10, math.Floor(math.Log10(low)))
	const high = 10.0
	x := func(v float64) float64 {
		v = min(max(v, low), high)
		return left + width*(math.Log10(v)-math.Log10(low))/(math.Log10(high)-math.Log10(low))
	}
	height := top + step*len(bars) + 20
	var b strings.Builder
	begin(&b, left+width+70, height)
	text(&b, left, 16, "start", "ratio to client-go, logarithmic; the mark is the goal")
	for v := low; v <= high*1.01; v *= 10 {
		line(&b, x(v), top-8, x(v), float64(height-16), "#ddd")
		text(&b, x(v), top-12, "middle", Number(v))
	}
	line(&b, x(1), top-8, x(1), float64(height-16), "#888")
	for i, r := range bars {
		y := float64(top + i*step)
		color := "#7f8fa6"
		if r.met != nil {
			color = map[bool]string{true: "#2e8b57", false: "#c0392b"}[*r.met]
		}
		text(&b, left-8, y+12, "end", r.label)
		from, to := min(x(r.ratio), x(1)), max(x(r.ratio), x(1))
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="12" fill="%s"/>`+"\n", from, y+2,
			max(to-from, 1), color)
		if r.goal > 0 {
			fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="3" height="16" fill="#222"/>`+"\n", x(r.goal)-1.5, y)
		}
		text(&b, to+6, y+12, "start", Number(r.ratio))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func label(layout string) string {
	if layout == "" {
		return ""
	}
	return " (" + layout + ")"
}

type growthPlot struct{ title, file, svg string }

// growthPlots draws, for each cost that was measured at several sizes, a curve for
// each layout and for client-go.
func growthPlots(rows []Result) []growthPlot {
	byCase := map[string][]Result{}
	var order []string
	for _, r := range rows {
		if r.Objects > 0 {
			if byCase[r.Case] == nil {
				order = append(order, r.Case)
			}
			byCase[r.Case] = append(byCase[r.Case], r)
		}
	}
	var plots []growthPlot
	for _, name := range order {
		points := byCase[name]
		curves := map[string][][2]float64{}
		for _, r := range points {
			curves[r.Layout] = append(curves[r.Layout], [2]float64{float64(r.Objects), r.Ours})
			if p := [2]float64{float64(r.Objects), 0}; r.Peer != nil {
				p[1] = *r.Peer
				if !slices.Contains(curves["client-go"], p) {
					curves["client-go"] = append(curves["client-go"], p)
				}
			}
		}
		plots = append(plots, growthPlot{name, fileName(name), curvePlot(name, points[0].Unit, curves)})
	}
	return plots
}

// fileName returns a file name for a title.
func fileName(title string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(title) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		case !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-") + ".svg"
}

func begin(b *strings.Builder, width, height int) {
	fmt.Fprintf(b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
			`font-family="sans-serif" font-size="11">`+"\n"+
			`<rect width="100%%" height="100%%" fill="white"/>`+"\n", width, height, width, height)
}

func text(b *strings.Builder, x, y float64, anchor, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="#222">%s</text>`+"\n", x, y, anchor,
		html.EscapeString(s))
}

func line(b *strings.Builder, x1, y1, x2, y2 float64, color string) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, color)
}
