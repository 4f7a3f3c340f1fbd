"""The log on PostgreSQL: datastore, tables, recorder and subscriptions."""
