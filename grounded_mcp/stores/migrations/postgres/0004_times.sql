-- When what a passage holds was said, where that is known: a session may go on for weeks.
ALTER TABLE passage ADD COLUMN at double precision;

CREATE INDEX passage_at ON passage (item, at) WHERE at IS NOT NULL;
CREATE INDEX item_span ON item (bucket, updated_at, created_at) WHERE passages > 0;
