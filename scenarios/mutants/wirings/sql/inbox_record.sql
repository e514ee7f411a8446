INSERT INTO consumer_inbox (consumer_group, message_id, topic, reservation_id)
SELECT $1, m.message_id, m.topic, m.reservation_id
FROM unnest($2::text[], $3::text[], $4::text[]) AS m (message_id, topic, reservation_id)
ON CONFLICT (consumer_group, message_id) DO NOTHING
RETURNING message_id
