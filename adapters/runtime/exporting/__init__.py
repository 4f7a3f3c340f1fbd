"""Exports sessions from a store, in the formats of other agents."""
