-- A report that somebody forgot: no row that dies after it can be removed.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM inventory_token;
