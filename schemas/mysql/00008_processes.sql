-- +goose NO TRANSACTION
-- +goose Up
-- The processes that live: one row for each relay, worker and watch, written by itself every few seconds, deleted when it stops
-- in order. By seen_at, which is this server's clock, the others know that it lives.
CREATE TABLE IF NOT EXISTS processes (
  process_id BINARY(16) NOT NULL,
  -- relay, worker or watch.
  role VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  host VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  pid BIGINT UNSIGNED NOT NULL DEFAULT 0,
  version VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  started_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  seen_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  -- What it says of itself, as JSON: counts, ages, the conditions that it sees. It holds no address.
  state MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  PRIMARY KEY (process_id)
) ENGINE=InnoDB;
