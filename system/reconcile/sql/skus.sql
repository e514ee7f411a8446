-- The SKUs whose accounts may still move, the latest sales first.
-- $1 how long after the end  $2 limit
SELECT s.activity_id, s.sku_id, s.total_stock, s.allocator, clock_timestamp()
FROM sku_inventory AS s
JOIN activity AS a USING (activity_id)
WHERE a.ends_at > clock_timestamp() - $1::interval
ORDER BY a.starts_at DESC, s.activity_id, s.sku_id
LIMIT $2
