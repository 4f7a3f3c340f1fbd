"""Summarisers that ask others: a model, a program, a package that somebody installed."""
