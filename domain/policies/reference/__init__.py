"""Copies of what the original programs do where the policies, by their settings, follow them."""
