"""Replays recorded sessions under other decisions, to find what the model would have been sent."""
