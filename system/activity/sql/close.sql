UPDATE activity
SET status = 'CLOSED', updated_at = clock_timestamp()
WHERE activity_id = $1 AND status <> 'CLOSED'
