-- What no validation of a message can know, the database refuses: one buyer
-- in fifty.
ALTER TABLE orders ADD CONSTRAINT poison CHECK (user_id % 50 <> 7) NOT VALID;
