-- +goose Up
CREATE TABLE activity (
    activity_id   bigint PRIMARY KEY CHECK (activity_id > 0),
    status        text NOT NULL CHECK (status IN ('RUNNING', 'CLOSED')),
    version       bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    starts_at     timestamptz NOT NULL,
    ends_at       timestamptz NOT NULL,
    resale_policy text NOT NULL DEFAULT 'retire' CHECK (resale_policy IN ('retire', 'resell')),
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now(),
    CHECK (starts_at < ends_at)
);

-- Totals, configuration, summary and reconciliation result (R6.7c): the hot
-- path reads it, and never updates it.
CREATE TABLE sku_inventory (
    activity_id     bigint NOT NULL REFERENCES activity,
    sku_id          bigint NOT NULL CHECK (sku_id > 0),
    total_stock     integer NOT NULL CHECK (total_stock > 0),
    available_stock integer NOT NULL CHECK (available_stock BETWEEN 0 AND total_stock), -- row allocators only
    version         bigint NOT NULL DEFAULT 0,
    price_cents     bigint NOT NULL CHECK (price_cents >= 0),
    allocator       text NOT NULL DEFAULT 'token',
    reconciled_at   timestamptz,
    reconciliation  jsonb,
    updated_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (activity_id, sku_id)
);

-- The advisory lock of a SKU. Order transactions hold it shared; who must see
-- the effect of all of them, or have all later ones see its own, takes it
-- exclusively.
-- +goose StatementBegin
CREATE FUNCTION inventory_gate(activity_id bigint, sku_id bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN hashint8extended(sku_id, activity_id);
-- +goose StatementEnd

-- One row a unit. token_id is random and seq is the order of claiming, which
-- only the partial index serves: with a primary key that satisfies ORDER BY
-- the planner walks the dead rows of everything claimed before.
CREATE TABLE inventory_token (
    token_id       bigint PRIMARY KEY CHECK (token_id > 0),
    activity_id    bigint NOT NULL,
    sku_id         bigint NOT NULL,
    seq            integer NOT NULL,
    status         text NOT NULL DEFAULT 'AVAILABLE'
                   CHECK (status IN ('AVAILABLE', 'CLAIMED', 'SOLD', 'RELEASED')),
    reservation_id text,
    order_id       text,
    claimed_at     timestamptz,
    updated_at     timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (activity_id, sku_id) REFERENCES sku_inventory,
    CHECK ((status IN ('CLAIMED', 'SOLD')) = (order_id IS NOT NULL)),
    CHECK ((order_id IS NULL) = (reservation_id IS NULL))
);
CREATE INDEX inventory_token_available ON inventory_token (activity_id, sku_id, seq)
    WHERE status = 'AVAILABLE';

CREATE TABLE orders (
    order_id           text PRIMARY KEY,
    activity_id        bigint NOT NULL,
    sku_id             bigint NOT NULL,
    user_id            bigint NOT NULL,
    request_id         text NOT NULL,
    reservation_id     text NOT NULL,
    inventory_token_id bigint NOT NULL,
    amount_cents       bigint NOT NULL CHECK (amount_cents >= 0),
    status             text NOT NULL CHECK (status IN ('CREATED', 'PAID', 'CANCELLED', 'EXPIRED')),
    created_at         timestamptz NOT NULL DEFAULT now(),
    updated_at         timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT uq_orders_activity_sku_user UNIQUE (activity_id, sku_id, user_id),
    CONSTRAINT uq_orders_reservation UNIQUE (reservation_id)
);
-- Under resale a token may have had several orders, never two valid ones.
CREATE UNIQUE INDEX uq_orders_valid_token ON orders (inventory_token_id)
    WHERE status IN ('CREATED', 'PAID');

CREATE TABLE order_items (
    order_id    text NOT NULL,
    line_no     smallint NOT NULL,
    sku_id      bigint NOT NULL,
    quantity    integer NOT NULL CHECK (quantity > 0),
    price_cents bigint NOT NULL,
    PRIMARY KEY (order_id, line_no)
);

-- How each reservation ended. A row appears with the decision, in the
-- transaction that makes it.
CREATE TABLE inventory_reservation (
    reservation_id text PRIMARY KEY,
    message_id     text NOT NULL,
    activity_id    bigint NOT NULL,
    sku_id         bigint NOT NULL,
    user_id        bigint NOT NULL,
    request_id     text NOT NULL,
    status         text NOT NULL CHECK (status IN (
                       'ORDER_CREATED', 'REJECTED_NO_FINAL_STOCK', 'REJECTED_DUPLICATE_USER',
                       'REJECTED_LATE', 'REJECTED_CLOSED', 'REJECTED_VERSION', 'REJECTED_POISON',
                       'SET_ASIDE', 'EXPIRED', 'CANCELLED')),
    order_id       text,
    return_stock   boolean NOT NULL DEFAULT false,
    reserved_at    timestamptz NOT NULL,
    decided_at     timestamptz NOT NULL DEFAULT now(),
    CHECK ((order_id IS NOT NULL) = (status IN ('ORDER_CREATED', 'EXPIRED', 'CANCELLED')))
);
CREATE INDEX inventory_reservation_request ON inventory_reservation (activity_id, sku_id, request_id);

-- Insert-only. Replayed it gives token states, order counts and Redis stock
-- (invariant I15). delta counts tokens, redis_return units given back to
-- Redis by the compensation:
--   ISSUE  +total  when the tokens are made      (reservation_id '')
--   SALE   -1      an order took a token
--   REJECT  0      a reservation ended without an order; redis_return 0 or 1
CREATE TABLE inventory_ledger (
    ledger_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    activity_id    bigint NOT NULL,
    sku_id         bigint NOT NULL,
    reservation_id text NOT NULL DEFAULT '',
    order_id       text,
    token_id       bigint,
    entry_type     text NOT NULL CHECK (entry_type IN ('ISSUE', 'SALE', 'REJECT')),
    delta          integer NOT NULL,
    redis_return   integer NOT NULL DEFAULT 0 CHECK (redis_return IN (0, 1)),
    created_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT uq_ledger_entry UNIQUE (activity_id, sku_id, reservation_id, entry_type),
    CHECK (entry_type <> 'SALE' OR (delta = -1 AND token_id IS NOT NULL AND order_id IS NOT NULL)),
    CHECK (entry_type <> 'REJECT' OR (delta = 0 AND token_id IS NULL AND order_id IS NULL))
);

CREATE TABLE consumer_inbox (
    consumer_group text NOT NULL,
    message_id     text NOT NULL,
    topic          text NOT NULL,
    reservation_id text NOT NULL,
    received_at    timestamptz NOT NULL DEFAULT now(),
    created_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer_group, message_id)
);

-- Half of each page is left for the lease's update, which then touches no
-- index: it halves the WAL of publishing.
CREATE TABLE event_outbox (
    event_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_type   text NOT NULL CHECK (event_type IN ('ORDER_CREATED', 'RESERVATION_COMPENSATE')),
    aggregate_id text NOT NULL, -- reservation_id
    payload      jsonb NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    attempts     integer NOT NULL DEFAULT 0,
    leased_until timestamptz,
    published_at timestamptz,
    CONSTRAINT uq_outbox_event UNIQUE (aggregate_id, event_type)
) WITH (fillfactor = 50);
CREATE INDEX event_outbox_unpublished ON event_outbox (event_id) WHERE published_at IS NULL;

-- Messages nobody can turn into a decision by trying again, with all that is
-- needed to look at them and to replay them.
CREATE TABLE dead_letter (
    dead_letter_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic          text NOT NULL,
    queue_id       integer NOT NULL,
    queue_offset   bigint NOT NULL,
    message_id     text NOT NULL,
    reservation_id text NOT NULL,
    class          text NOT NULL CHECK (class IN ('poison', 'newer_schema', 'refused_by_database')),
    reason         text NOT NULL,
    body           bytea NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT uq_dead_letter_position UNIQUE (topic, queue_id, queue_offset)
);

-- +goose Down
DROP TABLE dead_letter, event_outbox, consumer_inbox, inventory_ledger, inventory_reservation,
    order_items, orders, inventory_token, sku_inventory, activity;
DROP FUNCTION inventory_gate;
