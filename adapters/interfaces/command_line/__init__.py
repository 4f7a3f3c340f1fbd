"""Implements the program `cutbank`."""
