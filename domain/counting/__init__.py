"""Counts tokens: estimates, exact counts, images, and what providers report."""
