"""Stores the log in one SQLite file, through eventsourcing's extension points."""
