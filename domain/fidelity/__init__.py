"""Measures from the log, without a model, how much needed information survived a compaction."""
