UPDATE inventory_token AS t
SET status = 'SOLD', updated_at = now()
FROM unnest($1::bigint[], $2::text[]) AS c (token_id, order_id)
WHERE t.token_id = c.token_id AND t.order_id = c.order_id AND t.status = 'CLAIMED'
