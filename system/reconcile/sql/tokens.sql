-- Every unit by its id: a claimed or sold one belongs to exactly the valid
-- order that names it, a free or released one to none.
SELECT t.status,
       CASE t.status
           WHEN 'CLAIMED' THEN v.status = 'CREATED' AND v.order_id = t.order_id AND v.reservation_id = t.reservation_id
           WHEN 'SOLD' THEN v.status = 'PAID' AND v.order_id = t.order_id AND v.reservation_id = t.reservation_id
           ELSE v.order_id IS NULL
       END IS TRUE AS placed,
       count(*),
       (array_agg(t.token_id ORDER BY t.seq))[1:5]
FROM inventory_token AS t
LEFT JOIN orders AS v ON v.inventory_token_id = t.token_id AND v.status IN ('CREATED', 'PAID')
WHERE t.activity_id = $1 AND t.sku_id = $2
GROUP BY 1, 2
