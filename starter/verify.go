package starter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// verify looks whether the namespace that the starter reaches is the one that this outbox feeds. The first relay ever
// writes it down. A namespace rebuilt under the same name has another UUID, and knows nothing of what was started before;
// it must not swallow rows in silence. An error is the database's, and says nothing of Temporal.
func (r *Relay) verify(ctx context.Context, rebind bool) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.StartTimeout)
	defer cancel()
	name, id, o := r.starter.Namespace(ctx)
	if o.Class != Started {
		return o, nil
	}
	bound, boundID, err := r.binding(ctx, name, id, rebind)
	if err != nil {
		return Outcome{}, fmt.Errorf("read the remembered namespace: %w", err)
	}
	if boundID != id {
		return Outcome{Class: Misconfigured, Reason: fmt.Sprintf("this outbox feeds the Temporal namespace %s with the UUID %s, "+
			"but the relay now reaches %s with the UUID %s: it was rebuilt, or the address or the name is wrong. If it is to be "+
			"the outbox's own from now on, run the relay once with --rebind; messages that started in the old one "+
			"and are enqueued again would then start again", bound, boundID, name, id)}, nil
	}
	return Outcome{}, nil
}

// binding reads the remembered namespace, and writes it where there is none or rebind is set.
func (r *Relay) binding(ctx context.Context, name, id string, rebind bool) (boundName, boundID string, err error) {
	if rebind {
		_, err = r.db.ExecContext(ctx, `INSERT INTO outbox_binding (id, namespace, namespace_id) VALUES (1, ?, ?)
 ON DUPLICATE KEY UPDATE namespace = ?, namespace_id = ?, bound_at = CURRENT_TIMESTAMP(6)`, name, id, name, id)
		if err != nil {
			return "", "", err
		}
	}
	const read = "SELECT namespace, namespace_id FROM outbox_binding WHERE id = 1"
	err = r.db.QueryRowContext(ctx, read).Scan(&boundName, &boundID)
	if !errors.Is(err, sql.ErrNoRows) {
		return boundName, boundID, err
	}
	// IGNORE: another relay may be the first as well.
	if _, err = r.db.ExecContext(ctx, "INSERT IGNORE INTO outbox_binding (id, namespace, namespace_id) VALUES (1, ?, ?)",
		name, id); err != nil {
		return "", "", err
	}
	err = r.db.QueryRowContext(ctx, read).Scan(&boundName, &boundID)
	return boundName, boundID, err
}
