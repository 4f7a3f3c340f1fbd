"""Counts what a view shows, each thing once, by sort of content."""

from collections.abc import Iterable

from ..domain.counting.counter import CharsPerToken, Counter, has_media, pieces
from ..domain.counting.gauge import FRAME, SORTS, Sort
from ..domain.counting.images import ImageRule
from ..domain.counting.media import media_tokens
from .entry import Entry
from .recorded import Recorded

Size = tuple[Sort, int, int]

KEPT = 200_000
"""Counts that are remembered, of blocks of any session; then all are forgotten."""


class Tally:
    """Counts by a counter, and remembers by digest: equal blocks are counted once.

    Without a counter it takes the estimate that stands beside each block, which costs nothing.
    The counts are not kept on disk: to count a view anew takes less than to read them.
    """

    def __init__(self, counter: Counter | None = None) -> None:
        self.is_estimate = counter is None
        self.counter: Counter = counter or CharsPerToken()
        self._counts: dict[object, int] = {}

    def size(self, entry: Entry, rule: ImageRule) -> Size:
        """What a view shows of a block: of which sort, its tokens, and those of its media."""
        block = entry.block
        sort = SORTS.get(block.kind, Sort.TEXT)
        if entry.shown is None and has_media(block):
            return (sort, *self._parts(entry, rule))
        if self.is_estimate:
            # Thinking that its provider sealed shows nothing; `tokens` is at least 1.
            is_sealed = sort is Sort.THINKING and not block.text
            return sort, 0 if is_sealed else entry.tokens, 0
        key = entry.digest if entry.shown is None else (entry.digest, entry.shown)
        if (count := self._counts.get(key)) is None:
            whole = entry.shown is None
            count = self.counter.count(block) if whole else self.text(entry.text)
            self._remember(key, count)
        return sort, count, 0

    def load(self, entries: Iterable[Entry], rule: ImageRule) -> dict[Sort, int]:
        """What a view shows of blocks, by sort."""
        total: dict[Sort, int] = {}
        for entry in entries:
            sort, text, media = self.size(entry, rule)
            total[sort] = total.get(sort, 0) + text
            total[Sort.FRAME] = total.get(Sort.FRAME, 0) + FRAME
            if media:
                total[Sort.MEDIA] = total.get(Sort.MEDIA, 0) + media
        return total

    def text(self, text: str) -> int:
        return self.counter.count_text(text)

    def request(self, recorded: Recorded | None) -> int:
        """Tokens of a system prompt or of tools."""
        if recorded is None:
            return 0
        if (count := self._counts.get(recorded.digest)) is None:
            event = recorded.event
            said = getattr(event, "text", None)
            tools = getattr(event, "tools", None)
            count = self.text(said if said is not None else str(tools) if tools else "")
            self._remember(recorded.digest, count)
        return count

    def _parts(self, entry: Entry, rule: ImageRule) -> tuple[int, int]:
        """Tokens of the text and of the media of a block."""
        keys = (entry.digest, "text"), (entry.digest, rule)
        text, media = (self._counts.get(key) for key in keys)
        if text is None or media is None:
            found = list(pieces(entry.block))
            text = sum(self.text(piece) for piece in found if isinstance(piece, str))
            media = sum(media_tokens(one, rule) for one in found if not isinstance(one, str))
            for key, count in zip(keys, (text, media), strict=True):
                self._remember(key, count)
        return text, media

    def _remember(self, key: object, count: int) -> None:
        if len(self._counts) >= KEPT:
            self._counts.clear()
        self._counts[key] = count
