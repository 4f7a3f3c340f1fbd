"""What of a transcript its agent needs to go on: read from the file itself, not by the readers.

`essence_of(name)` returns for each session in the file its entries as plain data. Where something
is left out, the module of the format says what and why. Of a format in `WHOLE` or `MESSAGES`, all
of a file is needed: the sessions are told apart by an id in it, or by how its messages begin.
"""

import json
from collections.abc import Callable
from functools import partial, reduce
from importlib import import_module
from pathlib import Path
from typing import Any

from .message_arrays import bodies

Essence = Callable[[Path], dict[str, Any]]
WHOLE = {
    "atif": ("session_id",),
    "gemini-cli": ("sessionId",),
    "opencode": ("info", "id"),
}
"""Formats of one document a session, and where its id is."""
MESSAGES = {
    "anthropic": ("messages",),
    "openai-chat": ("messages",),
    "openai-responses": ("input", "output"),
}
"""Formats of messages alone, and the fields of a body that hold them."""
ALSO = {"oh-my-pi": "pi"}


def essence_of(name: str) -> Essence:
    """Return what reduces the transcripts of a format."""
    if fields := WHOLE.get(name):
        return partial(_whole, fields=fields)
    if fields := MESSAGES.get(name):
        return lambda path: bodies(path, *fields)
    module = import_module(f"essences.{ALSO.get(name, name).replace('-', '_')}")
    found: Essence = module.essence
    return found


def _whole(path: Path, fields: tuple[str, ...]) -> dict[str, Any]:
    document = json.loads(path.read_bytes())
    return {reduce(lambda part, field: part[field], fields, document): document}
