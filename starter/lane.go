package starter

import "github.com/oncepost/oncepost/outbox"

const (
	express = iota
	others
)

// othersShare: of so many starts in a row at least one is not an express one, while others wait.
const othersShare = 4

func laneOf(shard uint8) int {
	if shard >= outbox.FirstExpressShard {
		return express
	}
	return others
}

// lane is a queue of rows. The zero value is empty.
type lane struct {
	rows []*outbox.Row
	head int
}

func (l *lane) len() int { return len(l.rows) - l.head }

func (l *lane) push(row *outbox.Row) {
	if l.head > 0 && l.head == len(l.rows) {
		l.rows, l.head = l.rows[:0], 0
	}
	l.rows = append(l.rows, row)
}

func (l *lane) pop() *outbox.Row {
	if l.len() == 0 {
		return nil
	}
	row := l.rows[l.head]
	l.rows[l.head] = nil // a started row's payload is garbage at once
	l.head++
	return row
}

// remove drops the rows that drop says.
func (l *lane) remove(drop func(*outbox.Row) bool) {
	kept := l.rows[:0]
	for _, row := range l.rows[l.head:] {
		if !drop(row) {
			kept = append(kept, row)
		}
	}
	clear(l.rows[len(kept):])
	l.rows, l.head = kept, 0
}
