-- Two items that cannot both hold, each pair once in either direction. It counts while neither is superseded.
CREATE TABLE conflict (
    item  bigint NOT NULL REFERENCES item (num) ON DELETE CASCADE,
    other bigint NOT NULL REFERENCES item (num) ON DELETE CASCADE,
    PRIMARY KEY (item, other)
);

CREATE INDEX conflict_other ON conflict (other);
