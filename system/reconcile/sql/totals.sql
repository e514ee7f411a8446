SELECT (SELECT coalesce(sum(delta) FILTER (WHERE entry_type = 'ISSUE'), 0) FROM inventory_ledger WHERE activity_id = $1 AND sku_id = $2),
       (SELECT coalesce(sum(delta), 0) FROM inventory_ledger WHERE activity_id = $1 AND sku_id = $2),
       (SELECT count(*) FROM orders WHERE activity_id = $1 AND sku_id = $2 AND status = 'CREATED'),
       (SELECT count(*) FROM orders WHERE activity_id = $1 AND sku_id = $2 AND status = 'PAID'),
       (SELECT count(*) FROM orders AS o
        LEFT JOIN inventory_token AS t ON t.token_id = o.inventory_token_id AND t.activity_id = $1 AND t.sku_id = $2
        WHERE o.activity_id = $1 AND o.sku_id = $2 AND o.status IN ('CREATED', 'PAID') AND t.token_id IS NULL),
       (SELECT count(*) FROM inventory_reservation WHERE activity_id = $1 AND sku_id = $2)
