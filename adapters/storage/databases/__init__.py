"""The two databases of the event log: SQLite and PostgreSQL."""
