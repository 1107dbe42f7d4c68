// Package e2e holds the end-to-end tests: the built binaries as processes, on a real database and a real Temporal, with
// the mails read from the SES stand-in, and the pages in a real browser. It has no code of its own.
//
// What a single part guarantees is tested beside that part; here it is what only shows when processes start, meet, stop
// and are killed. The tests link the Temporal server: run them without -race.
package e2e
