-- Publishes again what was published long ago and seems not to have arrived,
-- waiting twice as long after each attempt.
-- $1 reservations  $2 first wait
UPDATE event_outbox
SET published_at = NULL, leased_until = NULL
WHERE aggregate_id = ANY ($1::text[])
  AND published_at < clock_timestamp() - $2::interval * power(2, least(attempts - 1, 8))
