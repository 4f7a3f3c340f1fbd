"""Past 90% of the limit, keep 70% of what blocks may take and sum up what came before it."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from typing import Any, ClassVar

from .. import timeline
from ..blocks import PROMPTS, Kind
from ..compaction_events import Trigger
from ..errors import NothingToCompactError
from ..messages import message_start
from ..repairs import nothing_to_gain
from ..summaries.forms.kdcube import KdcubeForm
from ..window import Item, Plan, Window
from .measure import Measure, Rounding, Unit
from .policy import check, refusal, setting


@dataclass(frozen=True, slots=True)
class TimelineCut:
    """Where the timeline is to be cut, before anything is repaired; in positions."""

    begins: int
    """The first block of the window: behind the last summary."""
    after: int
    keep: int
    """Tokens that are to stay."""
    first_kept: int
    turn_start: int | None
    """Where the turn begins that the cut splits; None where it splits none."""

    @property
    def takes_out(self) -> bool:
        return self.first_kept > self.begins


@dataclass(frozen=True)
class RollingTimeline:
    """Seed 000: what is recent stays, what a new summary stands for rolls out behind it.

    A cut stands at a turn or a message, never at a tool result. Where it splits a turn, the
    beginning of the turn is summed up apart.
    """

    name: ClassVar[str] = "rolling-timeline"
    alias: ClassVar[str] = "kdcube"
    source: ClassVar[str] = "seed 000: kdcube/kdcube-ai-app, react/doc/compaction-README.md"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "as_shipped": {
            "unit": "code-points",
            "counts": "in-memory",
            "protects": "if-it-fits",
            "budget_counts": "messages",
            "boundaries": "any-author",
            "cuts_at": "blocks",
            "turn_begins": "prompt",
            "heading": "colon",
        }
    }

    fires_at: float = setting(
        0.9, help="fires when more than this share is in use", unit="the limit", least=0, most=1
    )
    keeps: float = setting(
        0.7,
        help="this share stays of what the limit leaves for blocks",
        unit="the room for blocks",
        least=0,
        most=1,
    )
    keep_recent_turns: int = setting(
        6, help="the newest turns stay whole, where that leaves something; 0 is none", least=0
    )
    summary_tokens: int = setting(
        800, help="how large a summary may be", unit="tokens", least=1, most=1_000_000
    )
    turn_summary_tokens: int = setting(
        400, help="and that of a split turn's beginning", unit="tokens", least=1, most=1_000_000
    )
    unit: str = setting(Unit.RECKONED, help="what is counted, four a token", among=Unit)
    counts: str = setting(
        "visible",
        help="what fires: the view, or what left it and is still in memory as well",
        among=("visible", "in-memory"),
    )
    protects: str = setting(
        "always",
        help="whether recent turns stay that alone take more than the room for blocks",
        among=("always", "if-it-fits"),
    )
    budget_counts: str = setting(
        "blocks",
        help="what the share to keep is filled with: thinking and notes too, or without",
        among=("blocks", "messages"),
    )
    boundaries: str = setting(
        "user-and-assistant",
        help="whose blocks a cut may stand at; where none follows, any but a result will do",
        among=("user-and-assistant", "any-author"),
    )
    cuts_at: str = setting(
        "messages",
        help="whether a cut moves to the start of its message",
        among=("messages", "blocks"),
    )
    turn_begins: str = setting(
        "turn",
        help="where a split turn begins: with its first block, or the prompt before the cut",
        among=("turn", "prompt"),
    )
    heading: str = setting(
        "plain",
        help="how the heading above a split turn's beginning ends",
        among=("plain", "colon"),
    )

    def __post_init__(self) -> None:
        check(self)
        if self.keeps >= self.fires_at:
            raise refusal(
                self,
                "keeps",
                f"is {self.keeps}, not below fires_at ({self.fires_at}): "
                "what is kept would fire again",
            )

    # When

    def fires(self, window: Window) -> bool:
        """Whether more is in use than the share; never where no limit is known."""
        return window.limit > 0 and self.total(window) > int(window.limit * self.fires_at)

    def total(self, window: Window) -> int:
        """Tokens in use, by the settings' unit."""
        gone = window.evicted if self.counts == "in-memory" else ()
        if self.unit == Unit.RECKONED:
            return window.used + sum(item.tokens for item in gone)
        return (
            self.besides(window) + self.visible(window) + sum(self.sizes(gone, window.hides or {}))
        )

    def besides(self, window: Window) -> int:
        """Tokens that are in use besides the blocks and their summary."""
        if self.unit == Unit.RECKONED:
            return max(0, window.used - window.running[-1])
        return self._measure.tokens(window.system)

    def visible(self, window: Window) -> int:
        """Tokens of the blocks in view and of what stands for earlier ones."""
        standing = window.summary.text if window.summary else ""
        texts = timeline.replaced(window)
        return self.tokens(standing) + sum(self.sizes(window.items, texts))

    def tokens(self, text: str) -> int:
        """Tokens of a text; nothing for one that is blank."""
        return self._measure.tokens(text) if text and not text.isspace() else 0

    def sizes(self, items: Sequence[Item], replaced: Mapping[int, str | None]) -> Iterator[int]:
        """Tokens of each block, as it shows where another text stands for it."""
        if self.unit == Unit.RECKONED:
            return (item.tokens for item in items)
        return (
            self.tokens(replaced.get(item.position) or timeline.shown(item.block)) for item in items
        )

    @property
    def _measure(self) -> Measure:
        return Measure(Unit(self.unit), Rounding.DOWN, least=1)

    # Where

    def plan(self, window: Window) -> Plan | None:
        if window.trigger is Trigger.THRESHOLD and not self.fires(window):
            return None
        raw = self.cut(window)
        if raw is not None and raw.takes_out and raw.keep <= self._room(window):
            cut: int | None = raw.first_kept
            turn_start = raw.first_kept if raw.turn_start is None else raw.turn_start
        else:
            cut, turn_start = self._meant(window), 0
        if cut is None:
            if window.trigger is Trigger.IDLE:
                return None
            raise NothingToCompactError(
                f"{nothing_to_gain(window)}; {self.name} keeps {self.keeps:.0%} of the room for "
                "blocks, and there is no more (settings: keeps, keep_recent_turns)"
            )
        return Plan(
            cut=cut,
            reason=self._reason(window),
            summary_tokens=self.summary_tokens,
            turn_tokens=self.turn_summary_tokens,
            form=self.form(turn_start),
        )

    def form(self, turn_start: int = 0) -> KdcubeForm:
        """How the summary is put together; a split turn's beginning is what follows the start."""
        return KdcubeForm(turn_start=turn_start, ends_heading=":" if self.heading == "colon" else "")

    def answered(self, window: Window) -> TimelineCut | None:
        """The raw cut where the policy fires or is asked; None where it looks for none."""
        if window.trigger is Trigger.THRESHOLD and not self.fires(window):
            return None
        return self.cut(window)

    def cut(self, window: Window) -> TimelineCut | None:
        """The raw cut, as the rules give it; None where there is nothing behind the summary."""
        items = window.open_to_cut
        if not items:
            return None
        running = self._running(window)
        keep = self._keep(window, running)
        if self.budget_counts == "messages":
            running = self._running(window, messages_only=True)
        reached = _reaching(running, keep)
        at = self._first_boundary(items, reached)
        split = self._turn_start(items, at) if at is not None else None
        at = at or 0
        return TimelineCut(
            begins=items[0].position,
            after=window.after,
            keep=keep,
            first_kept=items[at].position,
            turn_start=None if split is None else items[split].position,
        )

    def _meant(self, window: Window) -> int | None:
        """Where to cut if the raw cut takes nothing out, or leaves more than there is room for.

        There the newest block is larger than what may stay, or the newest turns are: the store
        finds the nearest legal cut, or shortens what is too large.
        """
        items = window.open_to_cut
        if not items:
            return None
        running, room = self._running(window), self._room(window)
        keeps = [keep for keep in (self._keep(window, running),) if keep <= room]
        for keep in (*keeps, self._share(window)):
            reached = _reaching(running, keep)
            if reached is None:
                continue
            at = self._first_boundary(items, reached) or reached
            if at > 0:
                return items[at].position
        return items[0].position if running[-1] >= self._share(window) else None

    def _keep(self, window: Window, running: Sequence[int]) -> int:
        """Tokens to keep: the share, or the newest turns if these are more."""
        keep = self._share(window)
        if self.keep_recent_turns == 0:
            return keep
        recent = running[-1] - running[self._recent_start(window.open_to_cut)]
        if self.protects == "if-it-fits" and recent > self._room(window):
            return keep
        return max(keep, recent)

    def _share(self, window: Window) -> int:
        return max(1, int(self._room(window) * self.keeps))

    def _room(self, window: Window) -> int:
        """Tokens that the limit leaves for blocks; where none is known, what is in use counts."""
        limit = window.limit if window.limit > 0 else self.total(window)
        return max(1, limit - self.besides(window))

    def _running(self, window: Window, *, messages_only: bool = False) -> Sequence[int]:
        if self.unit == Unit.RECKONED and not messages_only:
            return window.running
        items = window.open_to_cut
        sizes = self.sizes(items, timeline.replaced(window))
        if messages_only:
            sizes = (
                size if self._is_message(item) else 0
                for item, size in zip(items, sizes, strict=True)
            )
        return tuple(accumulate(sizes, initial=0))

    def _recent_start(self, items: Sequence[Item]) -> int:
        """Index where the newest turns begin, as many as are to stay; 0 where there are fewer."""
        end, turns = len(items), set[int]()
        while end > 0:
            turn = items[end - 1].turn
            if turn and turn not in turns:
                turns.add(turn)
                if len(turns) == self.keep_recent_turns:
                    start = self._turn_start(items, end, turn)
                    return end - 1 if start is None else start
            end = bisect_left(items, turn, hi=end - 1, key=_TURN)
        return 0

    def _turn_start(self, items: Sequence[Item], at: int, turn: int | None = None) -> int | None:
        """Index where the turn began in which the item at an index stands.

        None where it is the first of its turn, or where the turn has no beginning here. With
        `turn`, that turn's beginning before the index.
        """
        if turn is None:
            turn = items[at].turn
            if turn == 0 or self._opens_turn(items, at):
                return None
        if self.turn_begins == "turn":
            return bisect_left(items, turn, hi=at, key=_TURN)
        for index in range(at - 1, -1, -1):
            if items[index].turn != turn:
                return None
            if timeline.opens_turn(items[index].block):
                return index
        return None

    def _opens_turn(self, items: Sequence[Item], at: int) -> bool:
        if timeline.opens_turn(items[at].block):
            return True
        return self.turn_begins == "turn" and (at == 0 or items[at - 1].turn != items[at].turn)

    def _first_boundary(self, items: Sequence[Item], reached: int | None) -> int | None:
        """Index of the first block at or behind an index that a cut may stand at.

        The first of all where none follows, or where the share to keep is not reached. What
        belongs to no message goes with the one behind it.
        """
        found = self._next_boundary(items, reached) if reached is not None else None
        if found is None:
            found = self._next_boundary(items, 0)
        if found is None:
            return None
        if self.cuts_at == "messages":
            found = message_start(items, found)
        while found > 0 and not self._is_message(items[found - 1]):
            found -= 1
        return found

    def _next_boundary(self, items: Sequence[Item], start: int) -> int | None:
        boundaries = range(start, len(items))
        found = next((at for at in boundaries if self._may_begin(items[at])), None)
        if found is None and self.boundaries == "user-and-assistant":
            anything = (at for at in boundaries if items[at].kind is not Kind.TOOL_RESULT)
            found = next(anything, None)
        return found

    def _is_message(self, item: Item) -> bool:
        return item.kind is Kind.TOOL_RESULT or self._may_begin(item)

    def _may_begin(self, item: Item) -> bool:
        """Whether a cut may stand at the block: it begins a turn or is a message."""
        block = item.block
        if block.origin is None:
            return block.kind in _MESSAGES
        type = timeline.type_of(block)
        if type in {timeline.RESULT, timeline.SUMMARY}:
            return False
        if type in _MESSAGE_TYPES:
            return True
        author = timeline.author_of(block)
        if self.boundaries == "user-and-assistant":
            return author in {"user", "assistant"}
        return author not in {"", "system", "tool"}

    def _reason(self, window: Window) -> str:
        in_use = f"{window.trigger}: {self.total(window):,} tokens in use"
        if window.limit > 0:
            in_use += f" of {window.limit:,}, of which {self.fires_at:.0%} may be"
        return f"{in_use}; {self.keeps:.0%} of the room for blocks is kept"


def _reaching(running: Sequence[int], keep: int) -> int | None:
    """Index of the newest block from which on so much is reached; None where it never is."""
    if running[-1] < keep:
        return None
    return bisect_right(running, running[-1] - keep) - 1


_TURN = attrgetter("turn")
_MESSAGES = PROMPTS | {Kind.ASSISTANT, Kind.TOOL_CALL}
_MESSAGE_TYPES = {timeline.PROMPT, timeline.COMPLETION, timeline.CALL, timeline.HEADER}
