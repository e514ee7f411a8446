SELECT row_to_json(r)
FROM (SELECT t.*, pg_xact_commit_timestamp(t.xmin) AS committed_at
      FROM table_name AS t
      WHERE NOT EXISTS (SELECT FROM orders AS o
                        WHERE o.order_id = t.key_column AND o.activity_id <> ALL ($1::bigint[]))) AS r
