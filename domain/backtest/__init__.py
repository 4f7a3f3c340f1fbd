"""Compares many policies over many sessions: cost, loss, and confidence."""
