SELECT s.total_stock - $3::bigint
       + (SELECT coalesce(sum(redis_return), 0) FROM inventory_ledger WHERE activity_id = $1 AND sku_id = $2)
       - (SELECT count(*) FROM inventory_reservation WHERE activity_id = $1 AND sku_id = $2)
FROM sku_inventory AS s
JOIN activity AS a USING (activity_id)
WHERE s.activity_id = $1 AND s.sku_id = $2
  AND a.status = 'CLOSED' AND a.updated_at < clock_timestamp() - $4::interval
