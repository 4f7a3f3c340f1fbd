"""Defines how each reference document requests and assembles its summaries."""
