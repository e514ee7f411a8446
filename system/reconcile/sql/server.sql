-- What the server says of itself. A replica's lag needs pg_monitor; without
-- it the columns are null and count as none.
SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, '0/0')::bigint,
       (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - l.waitstart)), 0)::float8
        FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
        WHERE NOT l.granted AND a.datname = current_database()),
       (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'),
       (SELECT count(*) FROM pg_stat_replication),
       (SELECT coalesce(max(extract(epoch FROM replay_lag)), 0)::float8 FROM pg_stat_replication),
       (SELECT count(*) FROM event_outbox WHERE published_at IS NULL),
       (SELECT coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8 FROM event_outbox WHERE published_at IS NULL)
