-- +goose Up
-- When an unpaid order expires. The default keeps consumers of the build
-- before working while both run.
ALTER TABLE orders
    ADD COLUMN payment_due_at timestamptz NOT NULL DEFAULT now() + interval '15 minutes',
    ADD COLUMN expiry_leased_until timestamptz; -- by a sweeper, which several share the work by
-- What the sweeper looks for. It holds open orders only.
CREATE INDEX orders_unpaid ON orders (payment_due_at) WHERE status = 'CREATED';

-- How an order ended, beside ISSUE, SALE and REJECT:
--   PAY     0       the token is SOLD
--   CANCEL  0 or 1  the token is RELEASED, or with 1 AVAILABLE again; its unit
--   EXPIRE  0 or 1  returns to Redis exactly if the token is free again
ALTER TABLE inventory_ledger
    DROP CONSTRAINT inventory_ledger_entry_type_check,
    ADD CONSTRAINT inventory_ledger_entry_type_check
        CHECK (entry_type IN ('ISSUE', 'SALE', 'REJECT', 'PAY', 'CANCEL', 'EXPIRE')),
    ADD CONSTRAINT inventory_ledger_end_check
        CHECK (entry_type NOT IN ('PAY', 'CANCEL', 'EXPIRE')
               OR (token_id IS NOT NULL AND order_id IS NOT NULL AND delta = redis_return
                   AND (delta = 0 OR entry_type <> 'PAY')));
CREATE UNIQUE INDEX uq_ledger_end ON inventory_ledger (order_id) WHERE entry_type IN ('PAY', 'CANCEL', 'EXPIRE');

-- +goose Down
DROP INDEX uq_ledger_end;
ALTER TABLE inventory_ledger
    DROP CONSTRAINT inventory_ledger_end_check,
    DROP CONSTRAINT inventory_ledger_entry_type_check,
    ADD CONSTRAINT inventory_ledger_entry_type_check CHECK (entry_type IN ('ISSUE', 'SALE', 'REJECT'));
DROP INDEX orders_unpaid;
ALTER TABLE orders DROP COLUMN expiry_leased_until, DROP COLUMN payment_due_at;
