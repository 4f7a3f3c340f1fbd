"""Compacts a stored session: window, plan, summary, gate, record, and hooks."""
