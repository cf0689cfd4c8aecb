-- Which passage names what, by digest (entities.entity_id): derived from the texts, which alone hold the names.
CREATE TABLE mention (
    entity  bigint NOT NULL,
    bucket  integer NOT NULL,
    passage bigint NOT NULL REFERENCES passage (id) ON DELETE CASCADE,
    PRIMARY KEY (entity, bucket, passage)
);

CREATE INDEX mention_passage ON mention (passage);
