"""Defines what a view holds, and counts its tokens by kind of content, each block once."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import cast

from pydantic import JsonValue

from ..domain.blocks import AnyBlock, BlockKind
from ..domain.cached_property import cached_property
from ..domain.compaction_events import CompactBoundary, Summary
from ..domain.event import Event
from ..domain.image_tokens import ImageRule, count_media_tokens
from ..domain.native_item import CutItem
from ..domain.session_events import RequestSettingsSet, SystemPromptSet, ToolsSet
from ..domain.token_estimate import (
    CONTENT_KINDS,
    FRAME_TOKENS,
    CharacterEstimate,
    ContentKind,
    TokenCounter,
    estimate_text,
    has_media,
    iter_pieces,
)


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
    item: CutItem | None = None
    """The item that ends with the block, as stored; see `list_items`."""

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
    calls = {entry.position for entry in view.entries if entry.block.kind is BlockKind.TOOL_CALL}
    answered = {entry.call for entry in view.entries if entry.call is not None}
    for entry in view.entries:
        if entry.call is not None and entry.call not in calls:
            yield entry.position, f"the result #{entry.position} is served without its call"
    for call in sorted(calls - answered):
        if call not in open_calls:
            yield call, f"the closed call #{call} is served without its result"
    for call in sorted({*open_calls} - calls):
        yield call, f"the open call #{call} is hidden"


_EntrySize = tuple[ContentKind, int, int]

_MAX_KEPT = 200_000
"""The most counts kept, for blocks of any session; beyond it, all are dropped."""


class TokenCounts:
    """Counts tokens with a counter, caching by digest so that equal blocks are counted once.

    Without a counter it uses the estimate stored with each block. The counts are not stored on
    disk, because counting a view again takes less time than reading them.
    """

    def __init__(self, counter: TokenCounter | None = None) -> None:
        self.is_estimate = counter is None
        self.counter: TokenCounter = counter or CharacterEstimate()
        self._counts: dict[object, int] = {}

    def count_entry(self, entry: ViewEntry, rule: ImageRule) -> _EntrySize:
        """Return the kind, the text tokens and the media tokens that a view shows of a block."""
        block = entry.block
        sort = CONTENT_KINDS.get(block.kind, ContentKind.TEXT)
        if entry.shown is None and has_media(block):
            return (sort, *self._count_parts(entry, rule))
        if self.is_estimate:
            # Sealed thinking shows nothing, although its `tokens` are at least 1.
            is_sealed = sort is ContentKind.THINKING and not block.text
            return sort, 0 if is_sealed else entry.tokens, 0
        key = entry.digest if entry.shown is None else (entry.digest, entry.shown)
        if (count := self._counts.get(key)) is None:
            whole = entry.shown is None
            count = self.counter.count(block) if whole else self.count_text(entry.text)
            self._remember(key, count)
        return sort, count, 0

    def sum_by_kind(self, entries: Iterable[ViewEntry], rule: ImageRule) -> dict[ContentKind, int]:
        """Return the tokens that a view shows of blocks, by kind."""
        total: dict[ContentKind, int] = {}
        for entry in entries:
            sort, text, media = self.count_entry(entry, rule)
            total[sort] = total.get(sort, 0) + text
            total[ContentKind.FRAME] = total.get(ContentKind.FRAME, 0) + FRAME_TOKENS
            if media:
                total[ContentKind.MEDIA] = total.get(ContentKind.MEDIA, 0) + media
        return total

    def count_text(self, text: str) -> int:
        return self.counter.count_text(text)

    def count_request(self, recorded: RecordedEvent | None) -> int:
        """Return the tokens of a system prompt or of tools."""
        if recorded is None:
            return 0
        if (count := self._counts.get(recorded.digest)) is None:
            event = recorded.event
            said = getattr(event, "text", None)
            tools = getattr(event, "tools", None)
            count = self.count_text(said if said is not None else str(tools) if tools else "")
            self._remember(recorded.digest, count)
        return count

    def _count_parts(self, entry: ViewEntry, rule: ImageRule) -> tuple[int, int]:
        keys = (entry.digest, "text"), (entry.digest, rule)
        text, media = (self._counts.get(key) for key in keys)
        if text is None or media is None:
            found = list(iter_pieces(entry.block))
            text = sum(self.count_text(piece) for piece in found if isinstance(piece, str))
            media = sum(count_media_tokens(one, rule) for one in found if not isinstance(one, str))
            for key, count in zip(keys, (text, media), strict=True):
                self._remember(key, count)
        return text, media

    def _remember(self, key: object, count: int) -> None:
        if len(self._counts) >= _MAX_KEPT:
            self._counts.clear()
        self._counts[key] = count
