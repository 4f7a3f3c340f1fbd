"""Imports foreign transcripts into a store."""
