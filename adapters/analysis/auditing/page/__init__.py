"""Renders a session as one HTML page that works without a network or a program."""
