SELECT sku_id, 'token', status, count(*) FROM inventory_token WHERE activity_id = $1 GROUP BY sku_id, status
UNION ALL
SELECT sku_id, 'order', status, count(*) FROM orders WHERE activity_id = $1 GROUP BY sku_id, status
UNION ALL
SELECT sku_id, 'reservation', status, count(*) FROM inventory_reservation WHERE activity_id = $1 GROUP BY sku_id, status
