ANALYZE activity, sku_inventory, inventory_token
