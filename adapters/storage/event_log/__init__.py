"""Stores events as rows of any database, with name tables and stream chains."""
