"""What the audit of requests tells beside the messages: system prompt, tools and settings."""

from dataclasses import dataclass, field
from typing import Any

from ..reading.fields import Item, take, take_optional
from ..steps import Asked

_OF_THE_AGENT = ("repl_main_thread", "sdk", "agent:")
"""How the sources of requests begin that go on with the conversation: others are asides."""


@dataclass(slots=True)
class Audit:
    """The shapes that were told, by their hashes, and the one that requests have now."""

    shapes: dict[str, Item] = field(default_factory=dict)
    waiting: tuple[str, Item] | None = None
    """A request whose shape was not told yet, and the key of what it asked."""
    current: tuple[str, Any] | None = None

    def shape(self, entry: Item) -> Asked | None:
        """The system prompt and the tools that requests of one hash share."""
        name = take(entry, "shapeHash", str)
        self.shapes[name] = take(entry, "shape", dict)
        if self.waiting and self.waiting[1]["shapeHash"] == name:
            key, request = self.waiting
            return self.request(request, key)
        return None

    def request(self, entry: Item, key: str) -> Asked | None:
        """What a request holds, where that is not what the one before it held."""
        source = take_optional(entry, "querySource", str)
        if source is not None and not source.startswith(_OF_THE_AGENT):
            return None
        name, settings = take(entry, "shapeHash", str), take_optional(entry, "params", dict)
        if name not in self.shapes:
            self.waiting = (key, entry)
            return None
        self.waiting = None
        if self.current == (name, settings):
            return None
        self.current = (name, settings)
        shape = self.shapes[name]
        return Asked(key, _words(shape.get("system")), _tools(shape), settings)


def _words(system: Any) -> str | None:
    match system:
        case str():
            return system
        case list():
            texts = [one["text"] for one in system if _is_text(one)]
            return "\n\n".join(texts) or None
        case _:
            return None


def _tools(shape: Item) -> list[Any] | None:
    return take_optional(shape, "tools", list, "shape.")


def _is_text(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("text"), str)
