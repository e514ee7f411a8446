SELECT EXISTS (SELECT FROM activity WHERE activity_id = $1)
