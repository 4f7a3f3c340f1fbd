"""Reports the status of every block of a session, and what its models were sent."""
