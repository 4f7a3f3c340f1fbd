"""Packs whole sessions into one file, cutbank's own archive format."""
