INSERT INTO order_items (order_id, line_no, sku_id, quantity, price_cents)
SELECT order_id, 1, $2, 1, $3
FROM unnest($1::text[]) AS order_id
