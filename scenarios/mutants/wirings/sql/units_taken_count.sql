SELECT coalesce(max(activity_id), 0), count(*)
FROM inventory_token
WHERE token_id = ANY ($1::bigint[]) AND status <> 'AVAILABLE'
