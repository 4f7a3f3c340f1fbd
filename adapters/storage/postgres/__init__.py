"""Keeps the log on PostgreSQL: datastore, tables, recorder and subscriptions."""
