"""Generates a sample session for demonstrations and tests."""
