WITH due AS (
    SELECT event_id
    FROM event_outbox
    WHERE published_at IS NULL
      AND (leased_until IS NULL OR leased_until < clock_timestamp())
    ORDER BY event_id
    LIMIT $1
    FOR UPDATE SKIP LOCKED
)
UPDATE event_outbox AS o
SET leased_until = clock_timestamp() + $2::interval, attempts = attempts + 1
FROM due
WHERE o.event_id = due.event_id
RETURNING o.event_id, o.payload
