INSERT INTO sku_inventory (activity_id, sku_id, total_stock, available_stock, price_cents)
VALUES ($1, $2, $3, $4, $5)
