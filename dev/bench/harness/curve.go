package harness

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

var colors = []string{"#c0392b", "#2e8b57", "#2c6fbb", "#b8860b", "#7d3c98", "#444444"}

// curvePlot draws costs over sizes, both logarithmic.
func curvePlot(title, unit string, curves map[string][][2]float64) string {
	const left, top, width, height = 70.0, 40.0, 420.0, 260.0
	lowX, highX, lowY, highY := math.Inf(1), 0.0, math.Inf(1), 0.0
	for _, points := range curves {
		for _, p := range points {
			lowX, highX = min(lowX, p[0]), max(highX, p[0])
			if p[1] > 0 {
				lowY, highY = min(lowY, p[1]), max(highY, p[1])
			}
		}
	}
	lowX, highX = math.Log10(lowX), math.Log10(highX)
	lowY, highY = math.Floor(math.Log10(lowY)), math.Ceil(math.Log10(highY))
	if highX == lowX {
		highX++
	}
	if highY == lowY {
		highY++
	}
	x := func(v float64) float64 { return left + width*(math.Log10(v)-lowX)/(highX-lowX) }
	y := func(v float64) float64 {
		return top + height*(highY-math.Log10(max(v, math.Pow(10, lowY))))/(highY-lowY)
	}

	var b strings.Builder
	begin(&b, int(left+width+140), int(top+height+40))
	text(&b, left, 20, "start", title+", "+unit)
	for e := lowY; e <= highY; e++ {
		v := math.Pow(10, e)
		line(&b, left, y(v), left+width, y(v), "#ddd")
		text(&b, left-6, y(v)+4, "end", Number(v))
	}
	for e := math.Ceil(lowX); e <= highX; e++ {
		v := math.Pow(10, e)
		line(&b, x(v), top, x(v), top+height, "#ddd")
		text(&b, x(v), top+height+16, "middle", thousands(int(v)))
	}
	for i, name := range slices.Sorted(maps.Keys(curves)) {
		points := slices.SortedFunc(slices.Values(curves[name]), func(p, q [2]float64) int { return int(p[0] - q[0]) })
		color := colors[i%len(colors)]
		var path []string
		for _, p := range points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x(p[0]), y(p[1])))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x(p[0]), y(p[1]), color)
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n",
			strings.Join(path, " "), color)
		key := top + 14*float64(i)
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="10" height="10" fill="%s"/>`+"\n", left+width+16, key, color)
		text(&b, left+width+32, key+9, "start", name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
