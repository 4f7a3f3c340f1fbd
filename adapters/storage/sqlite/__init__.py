"""The embedded store: one SQLite file through the extension points of eventsourcing."""
