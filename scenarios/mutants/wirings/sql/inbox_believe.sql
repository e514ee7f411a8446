-- All are fresh: who is not was left out before the transaction.
SELECT m.message_id
FROM unnest($2::text[], $3::text[], $4::text[]) AS m (message_id, topic, reservation_id)
WHERE $1::text <> ''
