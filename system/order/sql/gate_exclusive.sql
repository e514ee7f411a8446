SELECT pg_advisory_xact_lock(inventory_gate($1, $2))
