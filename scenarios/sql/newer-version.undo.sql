UPDATE activity SET version = 1, updated_at = now() WHERE activity_id = 10001;
