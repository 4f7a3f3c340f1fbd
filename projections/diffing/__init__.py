"""Compares two views of a session."""
