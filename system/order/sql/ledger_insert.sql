INSERT INTO inventory_ledger (activity_id, sku_id, reservation_id, order_id, token_id, entry_type, delta, redis_return)
SELECT $1, $2, l.reservation_id, nullif(l.order_id, ''), nullif(l.token_id, 0),
       CASE WHEN l.order_id = '' THEN 'REJECT' ELSE 'SALE' END,
       CASE WHEN l.order_id = '' THEN 0 ELSE -1 END,
       l.return_stock::integer
FROM unnest($3::text[], $4::text[], $5::bigint[], $6::boolean[])
     AS l (reservation_id, order_id, token_id, return_stock)
