"""Provides parts that all formats share: placeholders, media and times."""
