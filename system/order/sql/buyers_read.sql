-- One probe of the index for each user. "user_id = ANY ($3)" is planned while
-- the table is empty, as a scan of all of the SKU's orders filtered by user,
-- and that plan is kept for the whole sale; OFFSET 0 keeps the planner from
-- turning this into the same.
SELECT o.user_id
FROM unnest($3::bigint[]) AS u (user_id)
CROSS JOIN LATERAL (
    SELECT user_id
    FROM orders
    WHERE activity_id = $1 AND sku_id = $2 AND user_id = u.user_id
    OFFSET 0
) AS o
