"""Shows what happened in a session: what models saw, what left a view, and what replaced it."""
