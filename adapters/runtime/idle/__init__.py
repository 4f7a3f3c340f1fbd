"""Compacts sessions at rest and maintains the storage in idle time."""
