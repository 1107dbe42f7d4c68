package demo

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/width"
)

// printTable aligns the columns by the cells that a terminal gives each character: Korean letters take two.
func printTable(w io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], cells(text))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, text := range row {
			b.WriteString("  " + text + strings.Repeat(" ", widths[i]-cells(text)))
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

func cells(text string) (n int) {
	for _, r := range text {
		n++
		if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
			n++
		}
	}
	return n
}
