-- Since when something waits to be sent to the hub, and why it still does. Null for what was queued before.

ALTER TABLE outbox ADD COLUMN queued_at INTEGER; -- epoch milliseconds
ALTER TABLE uploads ADD COLUMN queued_at INTEGER; -- epoch milliseconds
ALTER TABLE uploads ADD COLUMN error TEXT; -- why it failed last
