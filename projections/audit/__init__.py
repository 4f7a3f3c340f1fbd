"""What became of all that a session holds, and what its models were shown of it."""
