"""Cutbank's own archive: sessions whole, in one file."""
