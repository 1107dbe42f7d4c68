package doctor

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Print writes the findings for a person, and how many there are of each severity.
func Print(w io.Writer, found []Finding) error {
	var b bytes.Buffer
	var n [len(severities)]int
	width := 0
	for _, f := range found {
		n[f.Severity]++
		width = max(width, len(f.Check))
	}
	for _, f := range found {
		word := f.Severity.String()
		if f.Severity >= Warning {
			word = strings.ToUpper(word)
		}
		fmt.Fprintf(&b, "%-7s  %-*s  %s\n", word, width, f.Check, f.Text)
		if f.Do != "" {
			fmt.Fprintf(&b, "%-7s  %-*s  -> %s\n", "", width, "", f.Do)
		}
	}
	fmt.Fprintf(&b, "\nerrors: %d, warnings: %d, notes: %d, as it should be: %d\n", n[Error], n[Warning], n[Note], n[OK])
	_, err := w.Write(b.Bytes())
	return err
}
