"""Writes and checks the summaries that replace blocks in a view."""
