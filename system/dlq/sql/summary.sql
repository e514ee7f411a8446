SELECT d.class, count(*), extract(epoch FROM clock_timestamp() - min(d.created_at))::float8
FROM dead_letter AS d
LEFT JOIN inventory_reservation AS r ON r.reservation_id = d.reservation_id
WHERE d.settled_at IS NULL AND NOT (d.kind = 'order_create' AND r.reservation_id IS NOT NULL)
GROUP BY d.class
