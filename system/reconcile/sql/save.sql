UPDATE sku_inventory
SET reconciled_at = clock_timestamp(), reconciliation = $3
WHERE activity_id = $1 AND sku_id = $2
