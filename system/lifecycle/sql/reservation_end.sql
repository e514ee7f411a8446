UPDATE inventory_reservation AS r
SET status = $1, return_stock = e.return_stock, decided_at = clock_timestamp()
FROM unnest($2::text[], $3::boolean[]) AS e (reservation_id, return_stock)
WHERE r.reservation_id = e.reservation_id AND r.status = 'ORDER_CREATED'
