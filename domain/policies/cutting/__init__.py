"""Finds where a policy cuts: walks back over a budget, and the positions where they may end."""
