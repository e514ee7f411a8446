SELECT reservation_id, user_id, request_id, status, coalesce(order_id, ''),
       message_id, return_stock, reserved_at, decided_at
FROM inventory_reservation
WHERE activity_id = $1 AND sku_id = $2 AND request_id = $3
ORDER BY (user_id = $4) DESC, (order_id IS NOT NULL) DESC, reserved_at
LIMIT 1
