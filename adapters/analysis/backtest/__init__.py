"""Runs many policies over many sessions: on one machine's processes, or on a cluster."""
