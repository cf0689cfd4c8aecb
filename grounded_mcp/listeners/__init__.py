"""Who is told what happened: each a callable that takes an event."""
