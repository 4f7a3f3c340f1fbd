"""Runs many policies over many sessions, in local processes or on a cluster."""
