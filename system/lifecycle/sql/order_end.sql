UPDATE orders AS o
SET status = $1, updated_at = clock_timestamp(), expiry_leased_until = NULL
FROM activity AS a
WHERE a.activity_id = o.activity_id
  AND o.order_id = ANY ($2::text[])
  AND o.status = 'CREATED'
  AND (o.payment_due_at <= now()) = $3::boolean
RETURNING o.order_id, o.reservation_id, o.activity_id, o.sku_id, o.user_id, o.inventory_token_id, a.resale_policy = 'resell'
