-- A page of what was decided, in the order of an index.
SELECT request_id, reservation_id
FROM inventory_reservation
WHERE activity_id = $1 AND sku_id = $2 AND (request_id, reservation_id) > ($3, $4)
ORDER BY request_id, reservation_id
LIMIT $5
