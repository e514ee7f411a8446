SELECT status, user_id, activity_id, reservation_id, request_id, sku_id
FROM orders
WHERE order_id = $1
