SELECT sku_id, total_stock, price_cents, allocator
FROM sku_inventory
WHERE activity_id = $1
ORDER BY sku_id
