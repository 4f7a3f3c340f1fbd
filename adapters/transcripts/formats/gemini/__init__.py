"""Reads and writes sessions of Gemini CLI, and Gemini API histories."""
