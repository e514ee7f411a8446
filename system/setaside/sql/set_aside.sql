-- Ends reservations as SET_ASIDE, each only if nothing decided it before: the
-- inbox row of its message comes first, as in every transaction that decides.
-- $1 group, then one array a column
WITH given AS (
    SELECT *
    FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::timestamptz[], $9::text[])
         AS g (reservation_id, message_id, activity_id, sku_id, user_id, request_id, reserved_at, payload)
), door AS (
    INSERT INTO consumer_inbox (consumer_group, message_id, topic, reservation_id)
    SELECT $1, message_id, 'set_aside', reservation_id
    FROM given
    ORDER BY message_id
    ON CONFLICT (consumer_group, message_id) DO NOTHING
    RETURNING reservation_id
), ended AS (
    INSERT INTO inventory_reservation (activity_id, sku_id, reservation_id, message_id, user_id,
                                       request_id, status, return_stock, reserved_at)
    SELECT activity_id, sku_id, reservation_id, message_id, user_id, request_id, 'SET_ASIDE', false, reserved_at
    FROM given
    JOIN door USING (reservation_id)
    ON CONFLICT (reservation_id) DO NOTHING
    RETURNING reservation_id
), entered AS (
    INSERT INTO inventory_ledger (activity_id, sku_id, reservation_id, entry_type, delta)
    SELECT activity_id, sku_id, reservation_id, 'REJECT', 0
    FROM given
    JOIN ended USING (reservation_id)
), announced AS (
    INSERT INTO event_outbox (event_type, aggregate_id, payload)
    SELECT 'RESERVATION_SET_ASIDE', reservation_id, payload::jsonb
    FROM given
    JOIN ended USING (reservation_id)
)
SELECT reservation_id
FROM ended
