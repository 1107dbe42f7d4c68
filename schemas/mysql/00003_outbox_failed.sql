-- +goose NO TRANSACTION
-- +goose Up
-- Messages that can never start, moved here by the relay with the reason. One message ID may appear more than once.
CREATE TABLE IF NOT EXISTS outbox_failed (
  failed_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  message_id VARCHAR(160) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  event_type VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  payload MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  headers TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  deliver_at TIMESTAMP(6) NULL DEFAULT NULL,
  priority TINYINT NOT NULL,
  created_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  -- 'never_starts' (Temporal refuses this message) or 'id_reused' (its ID was used before, for another message).
  reason VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  detail VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  failed_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  KEY by_message (message_id)
) ENGINE=InnoDB;
