"""Replays stored sessions under other decisions."""
