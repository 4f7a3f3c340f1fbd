"""What every policy owes the store, and how that is tried."""
