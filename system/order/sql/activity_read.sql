SELECT a.status, a.version, a.resale_policy = 'resell', s.price_cents, clock_timestamp()
FROM activity AS a
JOIN sku_inventory AS s USING (activity_id)
WHERE a.activity_id = $1 AND s.sku_id = $2
