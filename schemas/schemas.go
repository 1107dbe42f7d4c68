// Package schemas holds the contracts of oncepost: the numbered MySQL migrations, the JSON Schema of each shipped event
// type, and the limits of a row that hold for every producer. It only carries them: applying the migrations is
// internal/migrate's work, validating a payload against its schema that of activities.
package schemas

import (
	"embed"
	"io/fs"
)

// Limits of a row in outbox_messages. The CHECK constraints of the table hold the same ones.
const (
	MaxMessageID = 128     // characters
	MaxEventType = 64      // characters
	MaxPayload   = 1 << 20 // bytes
	MaxHeaders   = 8 << 10 // bytes
	MinPriority  = 1       // starts first
	MaxPriority  = 5
	// DefaultPriority is what the database fills in where a producer gives none.
	DefaultPriority = 3
	// LastExpressPriority is the last of the priorities (1 and 2) that take the express lane.
	LastExpressPriority = 2
)

//go:embed mysql/*.sql
var mysqlFiles embed.FS

//go:embed events/*.json
var eventFiles embed.FS

// MySQL returns the migrations, in files named NNNNN_name.sql with goose annotations.
func MySQL() fs.FS { return sub(mysqlFiles, "mysql") }

// Events returns the JSON Schemas (draft 2020-12), one file `<event type>.json` each.
func Events() fs.FS { return sub(eventFiles, "events") }

// sub cannot fail on a folder that the embed directive above named: the compiler refuses a missing one.
func sub(files embed.FS, dir string) fs.FS {
	s, err := fs.Sub(files, dir)
	if err != nil {
		panic(err)
	}
	return s
}
