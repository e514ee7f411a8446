SELECT aggregate_id, payload::text
FROM event_outbox
WHERE published_at IS NOT NULL AND (payload ->> 'activity_id')::bigint = $1
ORDER BY event_id DESC
LIMIT 500;
