-- Takes letters whose automatic replay is due, noting the replay before it is
-- made: another process leaves them alone, and one that dies has lost a try.
-- $1 tries  $2 first wait, doubled at each try  $3 limit
UPDATE dead_letter AS taken
SET replays = taken.replays + 1, replayed_at = clock_timestamp()
FROM (
    SELECT d.dead_letter_id
    FROM dead_letter AS d
    LEFT JOIN inventory_reservation AS r ON r.reservation_id = d.reservation_id
    WHERE d.settled_at IS NULL
      AND d.class = 'handed_back'
      AND NOT (d.kind = 'order_create' AND r.reservation_id IS NOT NULL)
      AND d.replays < $1
      AND coalesce(d.replayed_at, d.created_at) < clock_timestamp() - $2::interval * power(2, d.replays)
    ORDER BY d.dead_letter_id
    LIMIT $3
    FOR UPDATE OF d SKIP LOCKED
) AS due
WHERE taken.dead_letter_id = due.dead_letter_id
RETURNING taken.dead_letter_id, taken.kind, taken.body
