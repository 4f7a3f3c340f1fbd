"""A backtest as a page for people and as tables for programs."""
