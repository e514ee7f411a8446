SELECT reservation_id, user_id, request_id, status, coalesce(order_id, ''),
       message_id, return_stock, reserved_at, decided_at
FROM inventory_reservation
WHERE reservation_id = $3 AND activity_id = $1 AND sku_id = $2
