"""Brings foreign transcripts into a store."""
