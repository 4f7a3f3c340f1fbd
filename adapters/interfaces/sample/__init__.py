"""A session that the project made itself, for demonstrations and tests."""
