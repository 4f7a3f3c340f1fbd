"""How a view is said to each provider; a format is one file and one line in the catalog."""
