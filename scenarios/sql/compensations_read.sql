SELECT aggregate_id, payload::text
FROM event_outbox
WHERE event_type = 'RESERVATION_COMPENSATE' AND published_at IS NOT NULL AND (payload ->> 'activity_id')::bigint = $1
ORDER BY event_id;
