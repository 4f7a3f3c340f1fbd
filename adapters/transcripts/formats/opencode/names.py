"""The names in an opencode export that its reader and its writer share."""

NAME = "opencode"

SESSION = "session"
"""The type of the note that holds the document without its messages."""
MESSAGE = "message/"
"""How the type begins of a note that holds a message without its parts; its role follows."""
PART = "part/"
"""How the type begins of a note that holds a part."""
PRUNED = "pruned"
"""The type of the note that says when a result was taken out of the context."""

ANTHROPIC = "anthropic"
RESPONSES = "openai-responses"
