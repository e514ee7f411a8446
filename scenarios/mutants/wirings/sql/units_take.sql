UPDATE inventory_token AS t
SET status = 'CLAIMED', reservation_id = c.reservation_id, order_id = c.order_id, claimed_at = now(), updated_at = now()
FROM unnest($1::bigint[], $2::text[], $3::text[]) AS c (token_id, reservation_id, order_id)
WHERE t.token_id = c.token_id
