"""Provides helpers that several readers share, such as field access."""
