"""Defines the names that the reader and the writer of opencode exports share."""

FORMAT_NAME = "opencode"

OPENCODE_SESSION_ENTRY = "session"
"""The type of the note that holds the document without its messages."""
OPENCODE_MESSAGE_PREFIX = "message/"
"""The type prefix of a note that holds a message without its parts; its role follows."""
PART_PREFIX = "part/"
PRUNED_TEXT = "pruned"
"""The type of the note with the time at which a result left the context."""

ANTHROPIC = "anthropic"
RESPONSES = "openai-responses"
