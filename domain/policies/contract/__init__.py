"""Defines the contract between a policy and the store, and checks it."""
