INSERT INTO inventory_reservation (activity_id, sku_id, reservation_id, message_id, user_id,
                                   request_id, status, order_id, return_stock, reserved_at)
SELECT $1, $2, r.reservation_id, r.message_id, r.user_id,
       r.request_id, r.status, nullif(r.order_id, ''), r.return_stock, r.reserved_at
FROM unnest($3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[], $9::boolean[], $10::timestamptz[])
     AS r (reservation_id, message_id, user_id, request_id, status, order_id, return_stock, reserved_at)
