-- Every recall asks how many passages of the scopes that it searches have no vector yet.
CREATE INDEX passage_waiting ON passage (bucket) WHERE vector_state = 'pending';
