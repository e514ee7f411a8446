SELECT pg_advisory_xact_lock(inventory_gate(activity_id, sku_id))
FROM (SELECT activity_id, sku_id
      FROM sku_inventory
      WHERE activity_id = $1
      ORDER BY sku_id) AS skus
