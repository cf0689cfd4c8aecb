-- Which passage names what, by digest (entities.entity_id): derived from the texts, which alone hold the names.
CREATE TABLE mention (
    entity  INTEGER NOT NULL,
    bucket  INTEGER NOT NULL,
    passage INTEGER NOT NULL,
    PRIMARY KEY (entity, bucket, passage)
) STRICT, WITHOUT ROWID;

CREATE INDEX mention_passage ON mention (passage);

CREATE TRIGGER mention_gone AFTER DELETE ON passage BEGIN
    DELETE FROM mention WHERE passage = old.id;
END;

CREATE TRIGGER mention_moved AFTER UPDATE OF bucket ON passage BEGIN
    UPDATE mention SET bucket = new.bucket WHERE passage = old.id;
END;

-- What was stored before there were entities is read again by a repair.
INSERT INTO meta (name, value) SELECT 'entities', 'none' WHERE EXISTS (SELECT 1 FROM passage);
