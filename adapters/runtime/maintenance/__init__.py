"""Keeps the storage in order while nobody needs it."""
