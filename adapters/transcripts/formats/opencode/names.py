"""The names in an opencode export that its reader and its writer share."""

FORMAT_NAME = "opencode"

OPENCODE_SESSION_ENTRY = "session"
"""The type of the note that holds the document without its messages."""
OPENCODE_MESSAGE_PREFIX = "message/"
"""How the type begins of a note that holds a message without its parts; its role follows."""
PART_PREFIX = "part/"
"""How the type begins of a note that holds a part."""
PRUNED_TEXT = "pruned"
"""The type of the note that says when a result was taken out of the context."""

ANTHROPIC = "anthropic"
RESPONSES = "openai-responses"
