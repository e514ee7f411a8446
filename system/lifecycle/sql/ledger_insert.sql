INSERT INTO inventory_ledger (entry_type, activity_id, sku_id, reservation_id, order_id, token_id, delta, redis_return)
SELECT $1, l.activity_id, l.sku_id, l.reservation_id, l.order_id, l.token_id, l.returns::integer, l.returns::integer
FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::boolean[])
     AS l (activity_id, sku_id, reservation_id, order_id, token_id, returns)
