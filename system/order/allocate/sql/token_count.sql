SELECT count(*)
FROM (SELECT 1
      FROM inventory_token
      WHERE activity_id = $1 AND sku_id = $2 AND status = 'AVAILABLE'
      LIMIT $3) AS free
