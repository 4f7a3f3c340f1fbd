"""Provides helpers that several writers share."""
