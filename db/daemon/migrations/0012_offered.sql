-- Who may name a workspace: `here` this machine only, `elsewhere` also people of the realm who call this daemon, `offered`
-- also runs that the hub dispatches, because a person offered it, and `kept` the same, because a dispatched run had used
-- it before people offered workspaces.

ALTER TABLE workspaces ADD COLUMN reach TEXT NOT NULL DEFAULT 'here';
UPDATE workspaces SET reach = 'kept' WHERE path IN (
  SELECT workspace FROM runs WHERE parent_id IS NULL AND synced = 1 AND from_path = 0
) OR name IN (SELECT json_extract(payload, '$.workspace') FROM jobs WHERE kind = 'run');
