"""Recorded sessions run through again: what other decisions would have had the model sent."""
