UPDATE inventory_token AS t
SET status = CASE WHEN $3::boolean THEN 'AVAILABLE' ELSE 'RELEASED' END,
    reservation_id = NULL, order_id = NULL, claimed_at = NULL, updated_at = now()
FROM unnest($1::bigint[], $2::text[]) AS c (token_id, order_id)
WHERE t.token_id = c.token_id AND t.order_id = c.order_id AND t.status = 'CLAIMED'
