"""Defines what a view holds: recorded events and blocks as shown, and what a request is made of."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import cast

from pydantic import JsonValue

from ..domain.blocks import AnyBlock, Kind
from ..domain.compaction_events import CompactBoundary, Summary
from ..domain.event import Event
from ..domain.session_events import RequestSettingsSet, SystemPromptSet, ToolsSet
from ..domain.token_estimate import estimate_text


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    position: int
    event: Event
    tokens: int
    """Tokens of its block, estimated or calibrated; 0 for other events."""
    digest: bytes
    """Keyed hash of the event as stored; blocks with equal digests are equal."""
    ratio: float = 1.0
    """The model's tokens for one estimated token of the block."""


@dataclass(frozen=True, slots=True)
class ViewEntry:
    position: int
    block: AnyBlock
    """As recorded, whatever the view shows of it."""
    turn: int
    tokens: int
    """Estimated size of what the view shows."""
    digest: bytes
    call: int | None = None
    """For a tool result: the position of its call."""
    shown: str | None = None
    """The text shown instead of the block's own: trimmed, or a hidden block's replacement."""
    is_pinned: bool = False

    @property
    def text(self) -> str:
        return self.block.text if self.shown is None else self.shown


def get_system_prompt(system: RecordedEvent | None) -> str | None:
    return cast(SystemPromptSet, system.event).text if system else None


def estimate_system_and_tools(system: RecordedEvent | None, tools: RecordedEvent | None) -> int:
    """Estimate the tokens of the system prompt and of the tools that are in effect."""
    prompt = estimate_text(get_system_prompt(system) or "")
    return prompt + (estimate_text(str(cast(ToolsSet, tools.event).tools)) if tools else 0)


class Fingerprint:
    """The fingerprint of a view that may still grow, without reading earlier parts again."""

    def __init__(
        self,
        system: RecordedEvent | None,
        tools: RecordedEvent | None,
        settings: RecordedEvent | None,
        summary_digest: bytes,
    ) -> None:
        self._digest = blake2b(digest_size=16)
        for part in (system, tools, settings):
            self._digest.update(b"\x00" if part is None else b"\x01" + part.digest)
        self._digest.update(summary_digest)

    def add(self, entry: ViewEntry) -> None:
        self._digest.update(entry.digest)
        if entry.shown is not None:
            shown = blake2b(encode_text(entry.shown), digest_size=16).digest()
            self._digest.update(b"\x02" + shown)

    @property
    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def encode_text(text: str) -> bytes:
    """Return UTF-8 that includes lone surrogates, which models do write."""
    return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Which view: a position of the session, and a lineage at one of its versions."""

    position: int
    lineage: str
    lineage_version: int


@dataclass(frozen=True)
class ViewContent:
    """What a view holds, before anybody renders it."""

    session: str
    namespace: str
    coordinate: Coordinate
    boundary: CompactBoundary | None
    summary: Summary | None
    inherited_from: str | None
    """The lineage that the boundary was decided in, where it is not this one."""
    system: RecordedEvent | None
    tools: RecordedEvent | None
    settings: RecordedEvent | None
    entries: tuple[ViewEntry, ...]
    summary_digest: bytes = b""
    effective_from: int = 0
    """The position from which views begin at the boundary; what stands before it was written by
    a model that saw more."""

    @property
    def system_prompt(self) -> str | None:
        return get_system_prompt(self.system)

    @property
    def tool_definitions(self) -> list[JsonValue]:
        return cast(ToolsSet, self.tools.event).tools if self.tools else []

    @property
    def request_settings(self) -> dict[str, JsonValue]:
        return cast(RequestSettingsSet, self.settings.event).settings if self.settings else {}

    @cached_property
    def overhead(self) -> int:
        """Estimated tokens of what is sent in addition to the blocks."""
        summary = self.summary.tokens if self.summary else 0
        return estimate_system_and_tools(self.system, self.tools) + summary

    @cached_property
    def tokens(self) -> int:
        """Estimated tokens of the whole view."""
        return self.overhead + sum(entry.tokens for entry in self.entries)

    @cached_property
    def fingerprint(self) -> str:
        """Hex digest of all that is shown, in order; made of the blocks' own digests."""
        said = Fingerprint(self.system, self.tools, self.settings, self.summary_digest)
        for entry in self.entries:
            said.add(entry)
        return said.hexdigest


def find_parted_pairs(view: ViewContent, open_calls: Collection[int]) -> Iterator[tuple[int, str]]:
    """Yield a position and a message for each result or closed call without its other half.

    `open_calls` are the positions of the open calls at the view's coordinate.
    """
    calls = {entry.position for entry in view.entries if entry.block.kind is Kind.TOOL_CALL}
    answered = {entry.call for entry in view.entries if entry.call is not None}
    for entry in view.entries:
        if entry.call is not None and entry.call not in calls:
            yield entry.position, f"the result #{entry.position} is served without its call"
    for call in sorted(calls - answered):
        if call not in open_calls:
            yield call, f"the closed call #{call} is served without its result"
    for call in sorted({*open_calls} - calls):
        yield call, f"the open call #{call} is hidden"
