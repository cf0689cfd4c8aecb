"""How well recall finds what it should: collections with known answers, asked through the pipeline that users run."""
