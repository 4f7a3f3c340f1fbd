"""Who drives: a person, a request, an agent, the clock."""
