SELECT status, version, starts_at, ends_at, resale_policy = 'resell', updated_at
FROM activity
WHERE activity_id = $1
