"""Extracts lines from blocks for the extractive summarizer, and lays them out."""
