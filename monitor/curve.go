package monitor

import (
	"fmt"
	"html/template"
	"strings"
	"time"
)

// Sizes of the drawn curve.
const (
	curveWide, curveHigh  = 900, 110
	curveLeft, curveUnder = 60, 16
)

// curve draws what waited in the last hour, and under it how old the oldest was.
func curve(points []point, now time.Time) template.HTML {
	if len(points) < 2 {
		return `<p class="dim">The curve begins when this process has looked for a minute.</p>`
	}
	pending := draw(points, now, "pending messages", func(p point) float64 { return float64(p.pending) }, func(v float64) string { return fmt.Sprintf("%.0f", v) })
	oldest := draw(points, now, "oldest message's age", func(p point) float64 { return p.oldest }, func(v float64) string { return ago(v) })
	return template.HTML(pending + oldest) //nolint:gosec // numbers and constants
}

func draw(points []point, now time.Time, what string, of func(point) float64, label func(float64) string) string {
	top := 1.0
	for _, p := range points {
		top = max(top, of(p))
	}
	var path strings.Builder
	for i, p := range points {
		x := curveLeft + (1-min(1, now.Sub(p.at).Seconds()/historyFor.Seconds()))*(curveWide-curveLeft)
		y := 8 + (1-of(p)/top)*(curveHigh-curveUnder-8)
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", command, x, y)
	}
	const low = curveHigh - curveUnder
	return fmt.Sprintf(`<svg viewBox="0 0 %d %d" role="img" aria-label="%s in the last hour, at most %s">`+
		`<line x1="%d" y1="%d" x2="%d" y2="%d"/><path d="%s"/><text x="0" y="14">%s</text><text x="0" y="%d">0</text>`+
		`<text x="%d" y="%d">an hour ago</text><text x="%d" y="%d" text-anchor="end">%s, now</text></svg>`,
		curveWide, curveHigh, what, label(top), curveLeft, low, curveWide, low, path.String(), label(top), low,
		curveLeft, curveHigh-3, curveWide, curveHigh-3, what)
}
