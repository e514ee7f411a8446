-- The operator changed the activity; what was reserved under the old one is on
-- its way.
UPDATE activity SET version = version + 1, updated_at = now() WHERE activity_id = 10001;
