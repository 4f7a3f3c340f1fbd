"""What of a session of oh-my-pi its agent needs to go on: all that pi needs of its own."""

from essences.pi import essence

__all__ = ["essence"]
