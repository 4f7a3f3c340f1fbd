"""Writes summaries with models, programs and installed packages."""
