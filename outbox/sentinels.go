package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// RestoreSentinels puts back the permanent last row of each shard where somebody has deleted it (a TRUNCATE does), and
// returns how many were missing.
func (t Table) RestoreSentinels(ctx context.Context, conn *sql.Conn) (missing int64, err error) {
	var keys, values []string
	for shard := range Shards {
		keys = append(keys, fmt.Sprintf("(%d, '~%02d')", shard, shard))
		values = append(values, fmt.Sprintf("(%d, '~%02d', 'sentinel', '{}')", shard, shard))
	}
	var n int
	err = conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+t.name("outbox_messages")+
		" WHERE (shard, message_id) IN ("+strings.Join(keys, ",")+")").Scan(&n)
	if err != nil || n == Shards {
		return 0, err
	}
	// IGNORE: another relay may have put some back meanwhile. The values are constants that satisfy every constraint.
	//nolint:gosec // a quoted table name and constants
	res, err := conn.ExecContext(ctx, "INSERT IGNORE INTO "+t.name("outbox_messages")+
		" (shard, message_id, event_type, payload) VALUES "+strings.Join(values, ","))
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
