INSERT INTO consumer_inbox (consumer_group, message_id, topic, reservation_id)
SELECT $1, 'end_' || substr(reservation_id, 6), $2, reservation_id
FROM orders
WHERE order_id = ANY ($3::text[])
  AND status = 'CREATED'
  AND (payment_due_at <= now()) = $4::boolean
ORDER BY reservation_id -- so that concurrent batches wait for each other in one order
ON CONFLICT (consumer_group, message_id) DO NOTHING
