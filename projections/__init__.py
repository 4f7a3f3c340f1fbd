"""Read models folded from events: what the log looks like, never what happened."""
