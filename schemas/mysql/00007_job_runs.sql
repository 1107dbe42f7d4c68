-- +goose NO TRANSACTION
-- +goose Up
-- The runs of jobs that run once in a period, such as once a day. Written by locks.OncePer and `oncepost job run`.
CREATE TABLE IF NOT EXISTS job_runs (
  job VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  period VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  -- running, done, or failed (it said so, and may run again).
  state VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  -- The run's own, so that one that was taken over cannot end the record of its successor.
  token BINARY(16) NOT NULL,
  -- How often it has begun.
  attempts INT UNSIGNED NOT NULL DEFAULT 1,
  -- The machine of the last run, and its process.
  host VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  process BIGINT UNSIGNED NOT NULL DEFAULT 0,
  started_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  ended_at TIMESTAMP(6) NULL DEFAULT NULL,
  PRIMARY KEY (job, period),
  KEY by_age (started_at),
  CONSTRAINT job_runs_state_is_known CHECK (state IN ('running', 'done', 'failed'))
) ENGINE=InnoDB;
