"""Reads the user's settings from a TOML file and the environment, each value with its origin."""
