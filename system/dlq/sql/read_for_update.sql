SELECT d.dead_letter_id, d.kind, d.class, d.topic, d.queue_id, d.queue_offset, d.message_id, d.reservation_id,
       d.reason, d.body, d.created_at, d.replays, d.replayed_at, d.settled_at, d.note, coalesce(r.status, '')
FROM dead_letter AS d
LEFT JOIN inventory_reservation AS r ON r.reservation_id = d.reservation_id
WHERE d.dead_letter_id = $1
FOR UPDATE OF d
