"""The verbs of the program: their options, what they run, and what they print."""
