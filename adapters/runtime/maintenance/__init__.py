"""Maintains the storage in idle time."""
