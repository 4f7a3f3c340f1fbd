"""What a user decides once and for all: a TOML file, the environment, and where each value is from."""
