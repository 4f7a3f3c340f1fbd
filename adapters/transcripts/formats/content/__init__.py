"""What the entries of all formats are made of: what blocks hold of them, bytes, and times."""
