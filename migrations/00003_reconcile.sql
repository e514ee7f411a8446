-- +goose Up
-- What was done about a dead letter. A letter is settled by hand, or by the
-- decision of its reservation.
-- The broker that lost its disk counts offsets from 0 again: a position alone
-- does not tell two letters apart.
ALTER TABLE dead_letter
    ADD COLUMN kind        text NOT NULL DEFAULT 'order_create' CHECK (kind IN ('order_create', 'event', 'expiry_check')),
    ADD COLUMN replays     integer NOT NULL DEFAULT 0,
    ADD COLUMN replayed_at timestamptz,
    ADD COLUMN settled_at  timestamptz,
    ADD COLUMN note        text NOT NULL DEFAULT '',
    ADD COLUMN body_digest bytea NOT NULL GENERATED ALWAYS AS (sha256(body)) STORED,
    DROP CONSTRAINT dead_letter_class_check,
    ADD CONSTRAINT dead_letter_class_check
        CHECK (class IN ('poison', 'newer_schema', 'refused_by_database', 'handed_back')),
    DROP CONSTRAINT uq_dead_letter_position,
    ADD CONSTRAINT uq_dead_letter_position UNIQUE (topic, queue_id, queue_offset, body_digest);
CREATE INDEX dead_letter_unsettled ON dead_letter (dead_letter_id) WHERE settled_at IS NULL;

-- A reservation that was set aside for a person has its event, too, so that
-- the query shows it; in the ledger it is a REJECT that returns nothing.
ALTER TABLE event_outbox
    DROP CONSTRAINT event_outbox_event_type_check,
    ADD CONSTRAINT event_outbox_event_type_check
        CHECK (event_type IN ('ORDER_CREATED', 'RESERVATION_COMPENSATE', 'RESERVATION_SET_ASIDE'));

-- +goose Down
ALTER TABLE event_outbox
    DROP CONSTRAINT event_outbox_event_type_check,
    ADD CONSTRAINT event_outbox_event_type_check
        CHECK (event_type IN ('ORDER_CREATED', 'RESERVATION_COMPENSATE')) NOT VALID;
DROP INDEX dead_letter_unsettled;
ALTER TABLE dead_letter
    DROP CONSTRAINT uq_dead_letter_position,
    ADD CONSTRAINT uq_dead_letter_position UNIQUE (topic, queue_id, queue_offset),
    DROP CONSTRAINT dead_letter_class_check,
    ADD CONSTRAINT dead_letter_class_check CHECK (class IN ('poison', 'newer_schema', 'refused_by_database')) NOT VALID,
    DROP COLUMN body_digest, DROP COLUMN note, DROP COLUMN settled_at,
    DROP COLUMN replayed_at, DROP COLUMN replays, DROP COLUMN kind;
