SELECT count(*)
FROM unnest($1::text[]) AS u (reservation_id)
WHERE NOT EXISTS (SELECT 1 FROM inventory_reservation AS r WHERE r.reservation_id = u.reservation_id)
