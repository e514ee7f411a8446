UPDATE event_outbox
SET leased_until = NULL
WHERE event_id = ANY ($1::bigint[]) AND published_at IS NULL
