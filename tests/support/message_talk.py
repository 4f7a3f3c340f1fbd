"""Message arrays in the making, and what reading one yields."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from claude_code_talk import Reading

from cutbank.adapters.transcripts.formats.catalog import FORMATS, recognize_format
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.domain.ranges import Ranges
from cutbank.projections.rendering import summary_message

Message = dict[str, Any]
Hear = Callable[..., Reading]
"""Writes messages, or any bytes, to a file, and reads it in the format of that name."""


def written(path: Path, messages: Any) -> Path:
    """The file, with the messages as JSON, or the bytes as they are."""
    path.write_bytes(messages if isinstance(messages, bytes) else json.dumps(messages).encode())
    return path


def reading_in(name: str, path: Path, messages: Any) -> Reading:
    """What reading these messages yields."""
    source = TranscriptSource(written(path, messages))
    return Reading(list(FORMATS[name].read(source)))


def told_as(path: Path, messages: Any) -> str | None:
    """The format that recognises them."""
    found = recognize_format(TranscriptSource(written(path, messages)))
    return found.name if found else None


def summary(text: str) -> str:
    """A summary as cutbank says one to a model."""
    return summary_message.wrap_summary(text, Ranges.span(1, 9))


def user(content: Any) -> Message:
    return {"role": "user", "content": content}


def assistant(content: Any, **more: Any) -> Message:
    return {"role": "assistant", "content": content, **more}


def calling(id: str, name: str = "look", arguments: str = "{}") -> Message:
    """A message of the model's that calls a tool, in OpenAI's chat."""
    function = {"name": name, "arguments": arguments}
    call = {"id": id, "type": "function", "function": function}
    return assistant(None, tool_calls=[call])


def answering(id: str, content: Any = "seen") -> Message:
    return {"role": "tool", "tool_call_id": id, "content": content}


def used(id: str, name: str = "look", **arguments: Any) -> Message:
    """A message of the model's that calls a tool, in Anthropic's form."""
    return assistant([{"type": "tool_use", "id": id, "name": name, "input": arguments}])


def returned(id: str, content: Any = "seen") -> Message:
    return user([{"type": "tool_result", "tool_use_id": id, "content": content}])
