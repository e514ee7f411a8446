SELECT reservation_id, user_id, request_id, status, order_id, activity_id
FROM orders
WHERE order_id = $1
