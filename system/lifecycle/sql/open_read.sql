SELECT order_id, (extract(epoch FROM payment_due_at - clock_timestamp()) * 1e6)::bigint
FROM orders
WHERE order_id = ANY ($1::text[]) AND status = 'CREATED' AND payment_due_at > clock_timestamp()
