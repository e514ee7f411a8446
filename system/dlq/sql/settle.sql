UPDATE dead_letter
SET settled_at = clock_timestamp(), note = $2
WHERE dead_letter_id = ANY ($1::bigint[]) AND settled_at IS NULL
