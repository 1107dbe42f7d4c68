-- +goose NO TRANSACTION
-- +goose Up
-- The conditions that people are told of, one row each while it lasts, so that of all processes one tells. All times are this
-- server's.
CREATE TABLE IF NOT EXISTS ops_conditions (
  name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  -- Which one, where there can be several: a task queue, a lock. Empty otherwise.
  subject VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  -- In a sentence. It holds no address.
  detail VARCHAR(2048) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  since TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  -- The process that tells people, that it begins or that it is over, and until when it has that to itself.
  teller BINARY(16) NOT NULL,
  telling_ends_at TIMESTAMP(6) NULL DEFAULT NULL,
  -- NULL until somebody was told that it has begun.
  told_at TIMESTAMP(6) NULL DEFAULT NULL,
  -- Of something that has happened, and does not last: until when it counts. NULL where it lasts.
  holds_until TIMESTAMP(6) NULL DEFAULT NULL,
  PRIMARY KEY (name, subject)
) ENGINE=InnoDB;
