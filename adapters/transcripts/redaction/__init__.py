"""Leaves secrets out of what is imported."""
