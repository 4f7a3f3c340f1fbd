"""Decides when, where and what to compact; each policy is a frozen value."""
