"""How much of what an agent later needed survived a compaction: told from the log, by no model."""
