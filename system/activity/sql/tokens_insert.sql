INSERT INTO inventory_token (token_id, activity_id, sku_id, seq)
SELECT t.token_id, $1, $2, t.n - 1
FROM unnest($3::bigint[]) WITH ORDINALITY AS t (token_id, n)
