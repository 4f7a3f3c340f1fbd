"""Holds facts and decisions: pure code without database, clock, network or tokenizer."""
