SELECT d.xact_commit, (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint
FROM pg_stat_database AS d
WHERE d.datname = current_database()
