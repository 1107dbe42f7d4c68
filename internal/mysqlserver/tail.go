package mysqlserver

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

// tailWriter keeps the last limit bytes written to it.
type tailWriter struct {
	limit int
	buf   []byte
}

func (t *tailWriter) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if cut := len(t.buf) - t.limit; cut > 0 {
		t.buf = append(t.buf[:0], t.buf[cut:]...)
	}
	return len(p), nil
}

func (t *tailWriter) String() string { return string(bytes.TrimSpace(t.buf)) }

// logTailLines is how much of a server's log an error quotes.
const logTailLines = 20

// logTail returns the last lines of the log that were written after byte from.
func logTail(file string, from int64) string {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	defer f.Close()
	last := &tailWriter{limit: 16 << 10}
	if _, err := io.Copy(last, io.NewSectionReader(f, from, 1<<40)); err != nil {
		return fmt.Sprintf("(log unreadable: %v)", err)
	}
	lines := strings.Split(last.String(), "\n")
	if len(lines) > logTailLines {
		lines = lines[len(lines)-logTailLines:]
	}
	return strings.Join(lines, "\n")
}
