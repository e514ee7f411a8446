-- $1 settled ones, too  $2 class or ''  $3 after this id  $4 limit
SELECT d.dead_letter_id, d.kind, d.class, d.topic, d.queue_id, d.queue_offset, d.message_id, d.reservation_id,
       d.reason, d.body, d.created_at, d.replays, d.replayed_at, d.settled_at, d.note, coalesce(r.status, '')
FROM dead_letter AS d
LEFT JOIN inventory_reservation AS r ON r.reservation_id = d.reservation_id
WHERE ($1 OR (d.settled_at IS NULL AND NOT (d.kind = 'order_create' AND r.reservation_id IS NOT NULL)))
  AND ($2 = '' OR d.class = $2)
  AND d.dead_letter_id > $3
ORDER BY d.dead_letter_id
LIMIT $4
