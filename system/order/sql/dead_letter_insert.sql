INSERT INTO dead_letter (topic, queue_id, queue_offset, message_id, reservation_id, class, reason, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (topic, queue_id, queue_offset, body_digest) DO NOTHING
