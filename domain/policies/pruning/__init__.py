"""Chooses which messages leave by their score, and which results are shortened."""
