SELECT (SELECT count(*) FROM event_outbox WHERE published_at IS NULL),
       (SELECT count(*) FROM orders WHERE status = 'CREATED' AND payment_due_at <= clock_timestamp())
