"""Compacts sessions that are at rest, and keeps the storage in order, while nobody waits."""
