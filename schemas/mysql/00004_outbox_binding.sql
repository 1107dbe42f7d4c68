-- +goose NO TRANSACTION
-- +goose Up
-- The one Temporal namespace that this outbox feeds, remembered by its UUID: a namespace rebuilt under the same name knows
-- nothing of the messages started before, and must not swallow rows. Written by the first relay, changed by `relay --rebind`.
CREATE TABLE IF NOT EXISTS outbox_binding (
  id TINYINT UNSIGNED NOT NULL PRIMARY KEY,
  namespace VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  namespace_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  bound_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  CONSTRAINT outbox_binding_is_one_row CHECK (id = 1)
) ENGINE=InnoDB;
