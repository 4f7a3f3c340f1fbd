"""Runs many policies over many sessions."""
