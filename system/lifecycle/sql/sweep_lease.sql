-- statement_timestamp() is one moment, which an index can be asked for;
-- clock_timestamp() would be compared with every unpaid order.
WITH due AS (
    SELECT order_id
    FROM orders
    WHERE status = 'CREATED'
      AND payment_due_at <= statement_timestamp() - $2::interval
      AND (expiry_leased_until IS NULL OR expiry_leased_until < clock_timestamp())
    ORDER BY payment_due_at
    LIMIT $1
    FOR UPDATE SKIP LOCKED
)
UPDATE orders AS o
SET expiry_leased_until = clock_timestamp() + $3::interval
FROM due
WHERE o.order_id = due.order_id
RETURNING o.order_id
