"""Follows transcripts while they are written."""
