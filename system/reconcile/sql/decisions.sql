SELECT reservation_id, status, return_stock, extract(epoch FROM clock_timestamp() - decided_at)::float8
FROM inventory_reservation
WHERE reservation_id = ANY ($1::text[])
