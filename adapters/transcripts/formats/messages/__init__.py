"""Reads and writes message arrays, with a module for each provider that defines `FORMAT`."""
