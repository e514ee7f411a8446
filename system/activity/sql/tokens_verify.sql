SELECT count(*), count(DISTINCT seq), coalesce(min(seq), 0), coalesce(max(seq), -1)
FROM inventory_token
WHERE activity_id = $1 AND sku_id = $2 AND status = 'AVAILABLE'
