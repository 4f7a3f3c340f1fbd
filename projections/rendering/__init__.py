"""Renders a view for each provider; a format is one file and one line in the catalog."""
