"""Context packs: what is true now, why it was decided, and which files would settle it."""
