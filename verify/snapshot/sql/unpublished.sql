SELECT count(*) FROM event_outbox WHERE published_at IS NULL
