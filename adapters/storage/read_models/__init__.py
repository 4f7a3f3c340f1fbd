"""Keeps read models in a separate file that can be rebuilt at any time, with sqlite-utils."""
