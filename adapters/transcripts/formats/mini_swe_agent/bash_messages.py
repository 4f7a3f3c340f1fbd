"""Recognizes versions without tool calls, whose commands are in the text."""

import re
from typing import Any

FENCED_COMMAND = re.compile(
    r"^```(?:mswea_bash_command|bash)\s*\n(.*?)\n?^```", re.DOTALL | re.MULTILINE
)
_ROLES = frozenset({"system", "user", "assistant"})


def has_bash_messages(messages: list[Any]) -> bool:
    """Return whether only system, user and model speak, and the model starts with a command."""
    for message in messages:
        match message:
            case {"role": str(role), "content": str(), **more} if role in _ROLES and not more:
                pass
            case _:
                return False
    first = next((one["content"] for one in messages if one["role"] == "assistant"), "")
    return bool(messages) and messages[0]["role"] == "system" and bool(FENCED_COMMAND.search(first))
