"""Reads the system prompt, tools and settings from Claude Code's request audit."""

from dataclasses import dataclass, field
from typing import Any

from ..reading.fields import JsonDict, get_field, require_field
from ..steps import RequestParameters

_AGENT_SOURCES = ("repl_main_thread", "sdk", "agent:")
"""Prefixes of the sources of requests that continue the conversation; others are side requests."""


@dataclass(slots=True)
class RequestAudit:
    """The request shapes by hash, and the current one."""

    shapes: dict[str, JsonDict] = field(default_factory=dict)
    pending_request: tuple[str, JsonDict] | None = None
    current: tuple[str, Any] | None = None

    def read_shape(self, entry: JsonDict) -> RequestParameters | None:
        """Read the system prompt and the tools that requests with one hash share."""
        name = require_field(entry, "shapeHash", str)
        self.shapes[name] = require_field(entry, "shape", dict)
        if self.pending_request and self.pending_request[1]["shapeHash"] == name:
            key, request = self.pending_request
            return self.read_request(request, key)
        return None

    def read_request(self, entry: JsonDict, key: str) -> RequestParameters | None:
        """Return what a request holds, if it differs from the request before."""
        source = get_field(entry, "querySource", str)
        if source is not None and not source.startswith(_AGENT_SOURCES):
            return None
        name, settings = require_field(entry, "shapeHash", str), get_field(entry, "params", dict)
        if name not in self.shapes:
            self.pending_request = (key, entry)
            return None
        self.pending_request = None
        if self.current == (name, settings):
            return None
        self.current = (name, settings)
        shape = self.shapes[name]
        return RequestParameters(
            key, _system_text(shape.get("system")), _shape_tools(shape), settings
        )


def _system_text(system: Any) -> str | None:
    match system:
        case str():
            return system
        case list():
            texts = [one["text"] for one in system if _is_text(one)]
            return "\n\n".join(texts) or None
        case _:
            return None


def _shape_tools(shape: JsonDict) -> list[Any] | None:
    return get_field(shape, "tools", list, "shape.")


def _is_text(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("text"), str)
