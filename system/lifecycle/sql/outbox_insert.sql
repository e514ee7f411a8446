INSERT INTO event_outbox (event_type, aggregate_id, payload)
SELECT $1, e.aggregate_id, e.payload::jsonb
FROM unnest($2::text[], $3::text[]) AS e (aggregate_id, payload)
