-- Dispatch tokens that count once and have been used, as long as they would be accepted otherwise.

CREATE TABLE used_tokens (
  jti TEXT PRIMARY KEY,
  until INTEGER NOT NULL           -- epoch milliseconds
) WITHOUT ROWID;
