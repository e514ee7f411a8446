INSERT INTO inventory_ledger (activity_id, sku_id, entry_type, delta)
SELECT $1, $2, 'ISSUE', count(*)
FROM inventory_token
WHERE activity_id = $1 AND sku_id = $2
RETURNING delta
