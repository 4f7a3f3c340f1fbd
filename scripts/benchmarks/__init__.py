"""What scripts/benchmark.py measures: one subject a file."""
