"""Reads sessions of Gemini CLI, and Gemini API histories."""
