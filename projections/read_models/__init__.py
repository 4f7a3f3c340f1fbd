"""Turns events into the rows of read models, without a database."""
