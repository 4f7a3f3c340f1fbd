"""Removes secrets from imported transcripts."""
