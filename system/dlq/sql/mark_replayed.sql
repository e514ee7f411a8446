UPDATE dead_letter
SET replays = replays + 1, replayed_at = clock_timestamp()
WHERE dead_letter_id = $1 AND settled_at IS NULL
