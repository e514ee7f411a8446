SELECT pg_advisory_xact_lock_shared(inventory_gate($1, $2))
