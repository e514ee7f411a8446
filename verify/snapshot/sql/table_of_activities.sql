SELECT row_to_json(r)
FROM (SELECT t.*, pg_xact_commit_timestamp(t.xmin) AS committed_at
      FROM table_name AS t
      WHERE t.activity_id = ANY ($1::bigint[])) AS r
