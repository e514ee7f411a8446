SELECT reservation_id
FROM inventory_reservation
WHERE reservation_id = ANY ($1::text[])
