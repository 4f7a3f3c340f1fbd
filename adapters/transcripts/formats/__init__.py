"""Reads and writes the transcript formats of other agents."""
