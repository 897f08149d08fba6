package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// panel is one series of the plot.
type panel struct {
	title string
	value func(sample) float64
	fit   *flatness // nil if the series may grow
}

const (
	plotLeft, plotWidth      = 90.0, 780.0
	panelHeight, panelTop    = 110.0, 34.0
	panelStep                = panelHeight + panelTop + 16
	colorSeries, colorFitted = "#2c6fbb", "#c0392b"
)

// plot draws the series one above the other, with the fitted line of those that must be flat.
func plot(o outcome) string {
	panels := []panel{
		{"live heap, MiB", func(s sample) float64 { return float64(s.Heap) / (1 << 20) }, nil},
		{"goroutines", func(s sample) float64 { return float64(s.Goroutines) }, nil},
		{"open files", func(s sample) float64 { return float64(s.Files) }, nil},
		{"events waiting for all handlers", func(s sample) float64 { return float64(s.Backlog) }, nil},
		{"events so far", func(s sample) float64 { return float64(s.Events) }, nil},
		{"coalesced so far", func(s sample) float64 { return float64(s.Coalesced) }, nil},
		{"handlers joined so far", func(s sample) float64 { return float64(s.Joins) }, nil},
	}
	for i := range o.Flat {
		panels[i].fit = &o.Flat[i]
	}
	end := 1.0
	for _, s := range o.Samples {
		end = max(end, s.Seconds)
	}
	var b strings.Builder
	height := panelStep*float64(len(panels)) + 30
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" `+
			`font-family="sans-serif" font-size="11">`+"\n"+
			`<rect width="100%%" height="100%%" fill="white"/>`+"\n",
		plotLeft+plotWidth+30, height, plotLeft+plotWidth+30, height)
	for i, p := range panels {
		p.draw(&b, float64(i)*panelStep+panelTop, end, o.Samples)
	}
	for m := 0.0; m*60 <= end; m += max(1, math.Round(end/600)) {
		text(&b, plotLeft+plotWidth*m*60/end, height-12, "middle", fmt.Sprintf("%.0f min", m))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (p panel) draw(b *strings.Builder, top, end float64, samples []sample) {
	high := 1.0
	for _, s := range samples {
		high = max(high, p.value(s))
	}
	high *= 1.1
	x := func(seconds float64) float64 { return plotLeft + plotWidth*seconds/end }
	y := func(v float64) float64 { return top + panelHeight*(1-v/high) }
	title := p.title
	if p.fit != nil && p.fit.Points > 0 {
		title = p.fit.String()
	}
	text(b, plotLeft, top-8, "start", title)
	for _, share := range []float64{0, 0.5, 1} {
		v := high / 1.1 * share
		line(b, plotLeft, y(v), plotLeft+plotWidth, y(v), "#ddd")
		text(b, plotLeft-6, y(v)+4, "end", fmt.Sprintf("%.6g", v))
	}
	var points []string
	for _, s := range samples {
		points = append(points, fmt.Sprintf("%.1f,%.1f", x(s.Seconds), y(p.value(s))))
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n",
		strings.Join(points, " "), colorSeries)
	if p.fit != nil && p.fit.Points > 1 {
		line(b, x(p.fit.start), y(p.fit.from), x(end), y(p.fit.from+p.fit.Growth), colorFitted)
	}
}

func text(b *strings.Builder, x, y float64, anchor, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="#222">%s</text>`+"\n", x, y, anchor,
		html.EscapeString(s))
}

func line(b *strings.Builder, x1, y1, x2, y2 float64, color string) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, color)
}
