-- +goose NO TRANSACTION
-- +goose Up
-- The stops of sending: one row for each scope in which no mail may be sent, none while all is well. Written by the worker that
-- meets the cause, and by `oncepost sending`; read by every worker every two seconds. All times are this server's.
CREATE TABLE IF NOT EXISTS sending_stops (
  -- all, or credentials:HASH for the workers with the same credentials.
  scope VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  class VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  -- In a sentence. It holds no address.
  cause VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  -- The person who stopped it; empty where a worker did.
  stopped_by VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  since TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  -- When a trial may begin. NULL: never, a person's stop ends by a person.
  lease_ends_at TIMESTAMP(6) NULL DEFAULT NULL,
  -- How many stops in a row: the lease grows with them.
  stops INT UNSIGNED NOT NULL DEFAULT 1,
  -- The one worker that tries, and until when it has the trial unless it renews it.
  holder BINARY(16) NULL DEFAULT NULL,
  trial_ends_at TIMESTAMP(6) NULL DEFAULT NULL,
  PRIMARY KEY (scope)
) ENGINE=InnoDB;
