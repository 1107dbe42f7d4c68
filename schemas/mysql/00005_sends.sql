-- +goose NO TRANSACTION
-- +goose Up
-- The ledger: one row for each effect of a message that must not happen twice, such as one mail to one recipient. Written by
-- the worker, one statement before the effect (the claim) and one after it (the outcome). It holds no address, only a hash.
CREATE TABLE IF NOT EXISTS sends (
  message_id VARBINARY(160) NOT NULL,
  step VARBINARY(64) NOT NULL,
  recipient BINARY(32) NOT NULL,
  -- What the first claim was for. The same key for something else is refused.
  content BINARY(32) NOT NULL,
  -- 0, and one more for each time that somebody who might be wrong about it let the effect be tried again.
  generation INT UNSIGNED NOT NULL,
  -- claimed (an attempt may be at it), free (not done, may be tried), done, refused (never will be), unknown (may be done).
  state VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  token BINARY(16) NOT NULL,
  expires_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  result_id VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  error_class VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  created_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (message_id, step, recipient),
  KEY by_age (created_at),
  CONSTRAINT sends_state_is_known CHECK (state IN ('claimed', 'free', 'done', 'refused', 'unknown'))
) ENGINE=InnoDB;
