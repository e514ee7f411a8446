INSERT INTO orders (activity_id, sku_id, amount_cents, status,
                    order_id, user_id, request_id, reservation_id, inventory_token_id, payment_due_at)
SELECT $1, $2, $3, 'CREATED', o.*, $9
FROM unnest($4::text[], $5::bigint[], $6::text[], $7::text[], $8::bigint[]) AS o
