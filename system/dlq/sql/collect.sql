INSERT INTO dead_letter (topic, queue_id, queue_offset, message_id, reservation_id, kind, class, reason, body, settled_at, note)
SELECT l.topic, l.queue_id, l.queue_offset, l.message_id, l.reservation_id, l.kind, l.class, l.reason, l.body,
       CASE WHEN l.settled THEN clock_timestamp() END, l.note
FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
            $9::bytea[], $10::boolean[], $11::text[])
     AS l (topic, queue_id, queue_offset, message_id, reservation_id, kind, class, reason, body, settled, note)
ON CONFLICT (topic, queue_id, queue_offset, body_digest) DO NOTHING
