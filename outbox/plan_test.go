package outbox

import (
	"database/sql"
	"fmt"
	"strconv"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
)

// fullKey is the length of the primary key in a plan: the shard, and the ID with its length.
const fullKey = "163" // 1 + 160 + 2

// truncated stands for a table without even its sentinels, which every plan would like to read first.
const truncated = -1

// Each statement of a delete looks rows up one by one by the whole primary key, in an empty table as in a full one. A plan
// that scans waits for any producer's open INSERT.
func TestDeletePlanIsPointLookUps(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		r := newRelay(t, s.DB)
		for _, size := range []int{0, 3, 1000, truncated} {
			var ms []Message
			for i := range size {
				ms = append(ms, Message{EventType: "welcome", Payload: i})
			}
			if size > 0 {
				enqueue(t, s.DB, ms...)
			}
			if size == truncated {
				testdb.Exec(t, s.DB, "TRUNCATE TABLE outbox_messages")
			}
			testdb.Exec(t, s.DB, "ANALYZE TABLE outbox_messages")
			keys := append(r.keys(t), Key{Shard: 1, MessageID: "absent", CreatedAt: "2026-01-01 00:00:00.000000"})
			for name, query := range map[string]string{
				"find":   fmt.Sprintf("SELECT o.shard, o.message_id, o.created_at FROM "+keyTable, "outbox_messages"),
				"take":   fmt.Sprintf("SELECT o.shard, o.message_id, o.created_at FROM "+keyTable, "outbox_messages") + " " + r.lockClause(),
				"delete": r.dropSQL(),
			} {
				t.Run(strconv.Itoa(size)+" rows/"+name, func(t *testing.T) {
					lookUps := 0
					for _, o := range explain(t, r, query, keysJSON(keys[:min(len(keys), MaxDelete)])) {
						if o["table"] != "o" {
							continue
						}
						lookUps++
						if o["type"] != "eq_ref" || o["key"] != "PRIMARY" || o["key_len"] != fullKey || o["rows"] != "1" {
							t.Errorf("plan of outbox_messages: %v", o)
						}
					}
					if want := map[string]int{"delete": 2}[name]; lookUps != max(want, 1) {
						t.Errorf("outbox_messages stands %d times in the plan", lookUps)
					}
				})
			}
		}
	})
}

// A page's arm reads a range of the primary key, and sorts nothing.
func TestPagePlanIsARangeOfThePrimaryKey(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		r := newRelay(t, s.DB)
		arm := fmt.Sprintf(shardArm, InlineSize, "outbox_messages")
		plan := explain(t, r, arm[1:len(arm)-1], 3, "m", 10)[0]
		if plan["type"] != "range" || plan["key"] != "PRIMARY" || plan["key_len"] != fullKey {
			t.Errorf("plan %v", plan)
		}
	})
}

// explain returns the columns of each line of the plan.
func explain(t *testing.T, r relay, query string, args ...any) (plan []map[string]string) {
	t.Helper()
	// MySQL's default form is a tree; MariaDB knows no name for its table.
	word := map[Kind]string{MySQL: "EXPLAIN FORMAT=TRADITIONAL ", MariaDB: "EXPLAIN "}[r.Deleter.kind]
	rows, err := r.conn.QueryContext(t.Context(), word+query, args...)
	if err != nil {
		t.Fatalf("EXPLAIN %s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		targets := make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		row := map[string]string{}
		for i, column := range columns {
			row[column] = values[i].String
		}
		plan = append(plan, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan
}
