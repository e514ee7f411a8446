SELECT token_id
FROM inventory_token
WHERE activity_id = $1 AND sku_id = $2 AND status = 'AVAILABLE'
ORDER BY seq
LIMIT $3
FOR UPDATE SKIP LOCKED
