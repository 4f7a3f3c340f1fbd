"""Writes a backtest as an HTML page for people and as tables for programs."""
