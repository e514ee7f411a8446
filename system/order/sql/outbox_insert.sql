INSERT INTO event_outbox (event_type, aggregate_id, payload)
SELECT e.event_type, e.aggregate_id, e.payload::jsonb
FROM unnest($1::text[], $2::text[], $3::text[]) AS e (event_type, aggregate_id, payload)
