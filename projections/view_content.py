"""Defines what a view holds: the summary, the kept blocks, and what else a request is made of."""

from dataclasses import dataclass
from functools import cached_property

from pydantic import JsonValue

from ..domain.compaction_events import CompactBoundary, Summary
from ..domain.token_estimate import estimate_text
from .fingerprint import Fingerprint
from .recorded_event import RecordedEvent
from .view_entry import ViewEntry


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
        return self.system.event.text if self.system else None  # type: ignore[attr-defined]

    @property
    def tool_definitions(self) -> list[JsonValue]:
        return self.tools.event.tools if self.tools else []  # type: ignore[attr-defined]

    @property
    def request_settings(self) -> dict[str, JsonValue]:
        return self.settings.event.settings if self.settings else {}  # type: ignore[attr-defined]

    @cached_property
    def overhead(self) -> int:
        """Estimated tokens of what is sent besides the blocks."""
        system = estimate_text(self.system_prompt or "")
        tools = estimate_text(str(self.tool_definitions)) if self.tools else 0
        return system + tools + (self.summary.tokens if self.summary else 0)

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
