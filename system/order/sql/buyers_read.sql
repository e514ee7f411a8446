SELECT user_id
FROM orders
WHERE activity_id = $1 AND sku_id = $2 AND user_id = ANY ($3::bigint[])
