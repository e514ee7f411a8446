-- Free units first, then any.
WITH free AS (
    SELECT token_id
    FROM inventory_token
    WHERE activity_id = $1 AND sku_id = $2 AND status = 'AVAILABLE'
    ORDER BY seq
    LIMIT $3
    FOR UPDATE SKIP LOCKED
), taken AS (
    SELECT token_id
    FROM inventory_token
    WHERE activity_id = $1 AND sku_id = $2 AND status <> 'AVAILABLE'
    ORDER BY seq
    LIMIT $3
)
SELECT token_id FROM free
UNION ALL
SELECT token_id FROM taken
LIMIT $3
