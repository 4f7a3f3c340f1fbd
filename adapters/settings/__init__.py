"""What a user decides: a TOML file and the environment, checked, each value with its origin."""
