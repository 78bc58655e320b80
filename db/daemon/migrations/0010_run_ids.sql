-- The id of a run names its folder. Earlier versions took any text of the hub for one. What has another id than a UUID
-- goes, and no folder is removed for it.

DELETE FROM jobs WHERE run_id NOT GLOB replace('********-****-****-****-************', '*', '[0-9a-f]');
DELETE FROM runs WHERE root_id IN (
  SELECT root_id FROM runs WHERE id NOT GLOB replace('********-****-****-****-************', '*', '[0-9a-f]')
);
