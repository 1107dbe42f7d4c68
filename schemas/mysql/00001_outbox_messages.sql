-- +goose NO TRANSACTION
-- +goose Up
-- A producer writes one row here in the transaction of its business change:
--   INSERT INTO outbox_messages (event_type, payload) VALUES ('welcome', '{"company_id":"c_42"}');
-- message_id, event_type, payload, headers, deliver_at and priority are the producer's to set; the database fills the rest.
--
-- Columns are wider than their limits on purpose: without a strict sql_mode the server cuts a long value to the column's
-- width and turns a character that the column cannot hold into '?'. The CHECKs see what is left, and refuse it.
-- There is no other index, and none should be added: the relay only ever reads a shard in primary-key order.
CREATE TABLE IF NOT EXISTS outbox_messages (
  message_id VARCHAR(160) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    DEFAULT (LOWER(CONCAT_WS('-', -- a UUID version 7 (RFC 9562): 48 bits of milliseconds, then randomness
      LPAD(HEX(FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000) DIV 65536), 8, '0'),
      LPAD(HEX(FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000) MOD 65536), 4, '0'),
      CONCAT('7', SUBSTR(HEX(RANDOM_BYTES(2)), 2)),
      CONCAT(SUBSTR('89ab', 1 + (ORD(RANDOM_BYTES(1)) & 3), 1), SUBSTR(HEX(RANDOM_BYTES(2)), 2)),
      HEX(RANDOM_BYTES(6))))),
  event_type VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  payload MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  headers TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  deliver_at TIMESTAMP(6) NULL DEFAULT NULL,
  priority TINYINT NOT NULL DEFAULT 3,
  -- 16 shards, and 16 more (the express lane) for priorities 1 and 2.
  shard TINYINT UNSIGNED NOT NULL DEFAULT (CRC32(message_id) MOD 16 + IF(priority <= 2, 16, 0)),
  created_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (shard, message_id),
  CONSTRAINT outbox_message_id_is_1_to_128_of_0x21_to_0x7d_no_question_mark CHECK (
    message_id = CONCAT('~', LPAD(shard, 2, '0')) -- the shard's sentinel row
    OR (CHAR_LENGTH(message_id) BETWEEN 1 AND 128 AND message_id NOT REGEXP '[^!->@-}]')),
  CONSTRAINT outbox_event_type_is_1_to_64_letters_digits_dots_dashes CHECK (
    CHAR_LENGTH(event_type) BETWEEN 1 AND 64 AND event_type NOT REGEXP '[^A-Za-z0-9_.-]'),
  CONSTRAINT outbox_payload_is_json CHECK (JSON_VALID(payload)),
  CONSTRAINT outbox_payload_is_at_most_1_mib CHECK (OCTET_LENGTH(payload) <= 1048576),
  CONSTRAINT outbox_headers_are_a_json_object CHECK (
    headers IS NULL OR IF(JSON_VALID(headers), JSON_TYPE(headers), 'INVALID') = 'OBJECT'),
  CONSTRAINT outbox_headers_are_at_most_8_kib CHECK (OCTET_LENGTH(headers) <= 8192),
  CONSTRAINT outbox_deliver_at_is_a_time CHECK (deliver_at IS NULL OR YEAR(deliver_at) >= 1970),
  CONSTRAINT outbox_priority_is_1_to_5 CHECK (priority BETWEEN 1 AND 5),
  CONSTRAINT outbox_shard_is_filled_by_the_database CHECK (
    message_id LIKE '~%' OR shard = CRC32(message_id) MOD 16 + IF(priority <= 2, 16, 0))
) ENGINE=InnoDB;
