INSERT INTO activity (activity_id, status, starts_at, ends_at, resale_policy)
VALUES ($1, 'RUNNING', $2, $3, CASE WHEN $4::boolean THEN 'resell' ELSE 'retire' END)
ON CONFLICT (activity_id) DO NOTHING
