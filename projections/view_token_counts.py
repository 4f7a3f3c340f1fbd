"""Counts the tokens of a view by kind of content, each block once."""

from collections.abc import Iterable

from ..domain.counting.images import ImageRule, count_media_tokens
from ..domain.counting.token_calibration import CONTENT_KINDS, FRAME_TOKENS, ContentKind
from ..domain.token_estimate import CharacterEstimate, Counter, has_media, iter_pieces
from .recorded_event import RecordedEvent
from .view_entry import ViewEntry

_EntrySize = tuple[ContentKind, int, int]

_MAX_KEPT = 200_000
"""The most counts kept, for blocks of any session; beyond it, all are dropped."""


class TokenCounts:
    """Counts tokens with a counter, caching by digest so that equal blocks are counted once.

    Without a counter it uses the estimate stored with each block. The counts are not stored on
    disk, because counting a view again takes less time than reading them.
    """

    def __init__(self, counter: Counter | None = None) -> None:
        self.is_estimate = counter is None
        self.counter: Counter = counter or CharacterEstimate()
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
