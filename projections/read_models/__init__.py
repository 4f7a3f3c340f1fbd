"""Events to the rows of read models, without a database."""
