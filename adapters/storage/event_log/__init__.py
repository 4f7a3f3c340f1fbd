"""Stores events as rows of any database, chained and named."""
