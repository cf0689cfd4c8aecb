"""Past sessions of coding agents: one module per agent's format, all yielding the same turns."""
