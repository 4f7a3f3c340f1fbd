"""Sessions of Gemini CLI, and the histories that it sends."""
