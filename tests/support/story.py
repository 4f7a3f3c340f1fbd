"""Sessions in which everything happens that can happen to a view, and what must hold of each."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st
from made_events import make_boundary, make_summary

from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.compaction_events import CompactBoundary, Summary, Trigger, Trim
from cutbank.domain.errors import NothingToCompactError
from cutbank.domain.item import WindowItem, group_blocks, order_for_view
from cutbank.domain.ranges import Ranges
from cutbank.domain.settlement import BlockStatus, Settlement, settle_plan
from cutbank.domain.token_estimate import estimate_block
from cutbank.domain.window import Plan, Window
from cutbank.projections.block_statuses import compute_status_ranges, find_status

Act = tuple[str, int]


@dataclass
class Story:
    """A session in which everything happens that can happen to a view, and its one lineage."""

    sizes: Sequence[int] = ()
    """Characters that texts have in turn, and by which they are counted; else each counts as 1."""
    limit: int = 100
    trigger: Trigger = Trigger.MANUAL

    head: int = 1
    turn: int = 0
    blocks: dict[int, tuple[AnyBlock, int, int | None]] = field(default_factory=dict)
    """Position to block, turn and the position of its call."""
    open_calls: list[int] = field(default_factory=list)
    pinned: set[int] = field(default_factory=set)
    retracted: Ranges = Ranges()
    hides: dict[int, str | None] = field(default_factory=dict)
    retracted_since: Ranges = Ranges()
    boundary: CompactBoundary | None = None
    summary: Summary | None = None
    generation: int = 0

    # What happens

    def user(self, _: int) -> None:
        self.turn += 1
        self._append(Block.user(self._text("words")))

    def assistant(self, n: int) -> None:
        """One message: thinking, words and up to three calls."""
        message = f"message-{self.head}" if n % 5 else None
        if n % 2:
            self._append(Block.thinking(self._text("thoughts"), message_id=message))
        if n % 3:
            self._append(Block.assistant(self._text("words"), message_id=message))
        for _ in range(n % 4):
            call = ToolCall(tool_call_id=str(self.head + 1), name="tool", message_id=message)
            self.open_calls.append(self._append(call))

    def result(self, n: int) -> None:
        if self.open_calls:
            call = self.open_calls.pop(n % len(self.open_calls))
            self._append(ToolResult(tool_call_id=str(call), content=self._text("x" * 200)), call)

    def results(self, _: int) -> None:
        while self.open_calls:
            self.result(0)

    def nothing(self, _: int) -> None:
        """An event that stands for no block."""
        self.head += 1

    def pin(self, n: int) -> None:
        self.pinned |= {at for at in self._one_of(self.blocks, n) if at not in self.retracted}

    def unpin(self, n: int) -> None:
        self.pinned -= set(self._one_of(self.pinned, n))

    def hide(self, n: int) -> None:
        for at in self._one_of(self.blocks, n // 2):
            self.hides[at] = "[hidden]" if n % 2 else None
        self.head += 1

    def retract(self, n: int) -> None:
        """Take back the newest blocks of the view, or all of it; behind the boundary too.

        What a summary stands for is left alone: taking that back makes an older boundary active.
        """
        visible = [at for at in self.blocks if self._is_visible(at)]
        back = visible[-(n % 9) :]
        self.retracted |= Ranges.of(back)
        self.retracted_since |= Ranges.of(back)
        reopened = [call for at in back if (call := self.blocks[at][2]) and call not in back]
        self.open_calls = [at for at in self.open_calls if at not in back] + reopened
        self.pinned -= set(back)
        self.head += 1

    def _text(self, usual: str) -> str:
        return "x" * self.sizes[self.head % len(self.sizes)] if self.sizes else usual

    def _append(self, block: AnyBlock, call: int | None = None) -> int:
        self.head += 1
        self.blocks[self.head] = (block, self.turn, call)
        return self.head

    @staticmethod
    def _one_of(positions: object, n: int) -> list[int]:
        known = sorted(positions)  # type: ignore[call-overload]
        return [known[n % len(known)]] if known else []

    # What is shown

    def window(self) -> Window:
        visible = {at for at in self.blocks if self._is_visible(at)}
        recalled = {at for at in self.pinned if at not in visible and at not in self.retracted}
        everything = [self._item(at) for at in self.blocks if at not in self.retracted]
        # Whoever recalls a block recalls what it is bound to.
        for group in group_blocks(everything):
            if any(item.position in recalled for item in group):
                visible |= {item.position for item in group}
        return Window(
            items=tuple(order_for_view(self._item(at) for at in sorted(visible))),
            after=self.head,
            limit=self.limit,
            trigger=self.trigger,
            boundary=self.boundary,
            summary=self.summary,
            pinned=Ranges.of(self.pinned),
            hides=dict(self.hides),
            retracted=self.retracted_since,
        )

    def _is_visible(self, at: int) -> bool:
        if at in self.retracted:
            return False
        return self.boundary is None or at > self.boundary.after or at in self.boundary.kept

    def _item(self, at: int) -> WindowItem:
        block, turn, call = self.blocks[at]
        return WindowItem(
            position=at,
            block=block,
            turn=turn,
            tokens=estimate_block(block) if self.sizes else 1,
            call=call,
            is_open=at in self.open_calls,
            is_pinned=at in self.pinned,
        )

    # What is decided

    def fate(self, at: int) -> BlockStatus | None:
        fates = compute_status_ranges(self.boundary, self.summary, self.retracted, at)
        return find_status(fates, at)

    def compact(self, n: int) -> Settlement | None:
        trim = Trim(position=n % self.head + 1, head=10)
        plan = Plan(cut=n % (self.head + 2), reason="", summary_tokens=1, trims=(trim,))
        return self._settled(plan)

    def prune(self, n: int) -> Settlement | None:
        """Single blocks leave, wherever they stand; of one in three plans behind a cut."""
        drops = Ranges.of(at for at in range(1, self.head + 1) if (at * (n // 3)) % 5 == 1)
        cut = n % (self.head + 2) if n % 3 == 0 else None
        return self._settled(Plan(cut, reason="", summary_tokens=0, drops=drops))

    def shorten(self, n: int) -> Settlement | None:
        """Results are shown shortened, and nothing leaves."""
        trims = tuple(Trim(position=at, head=n % 90) for at in range(1, self.head + 1, n % 3 + 1))
        return self._settled(Plan(None, reason="", summary_tokens=0, trims=trims))

    def _settled(self, plan: Plan) -> Settlement | None:
        try:
            return self.settled(self.window(), plan)
        except NothingToCompactError:
            return None

    def settled(self, window: Window, plan: Plan) -> Settlement:
        """The plan is made legal, and the view begins there."""
        settlement = settle_plan(window, plan)
        self.generation += 1
        self.boundary = make_boundary(
            originator_version=self.generation,
            after=settlement.after,
            first_kept=settlement.first_kept,
            kept=settlement.kept,
            pinned=settlement.pinned,
            hidden=settlement.hidden,
            trims=settlement.trims,
            replacements=settlement.replacements,
            split_turn=settlement.split_turn,
        )
        self.summary = make_summary(
            originator_version=self.generation,
            boundary=self.generation,
            covers=settlement.covers,
        )
        self.hides = {}
        self.retracted_since = Ranges()
        return settlement


def told(*acts: str) -> Story:
    return told_on(Story(), *acts)


def told_on(story: Story, *acts: str) -> Story:
    """The story goes on with acts, as `user`, `assistant 3` or `compact 5`."""
    for act in acts:
        verb, _, n = act.partition(" ")
        getattr(story, verb)(int(n or 0))
    return story


def play(story: Story, *acts: Act) -> None:
    for verb, n in acts:
        getattr(story, verb)(n)


talking: st.SearchStrategy[Act] = st.tuples(
    st.sampled_from(["user", "assistant", "assistant", "result", "results", "nothing"]),
    st.integers(min_value=0, max_value=59),
)
meddling: st.SearchStrategy[Act] = st.tuples(
    st.sampled_from(["pin", "unpin", "hide", "retract"]), st.integers(min_value=0, max_value=500)
)
chapters = st.lists(
    st.tuples(
        st.lists(talking, min_size=1, max_size=8),
        st.lists(meddling | talking, max_size=5),
        st.tuples(
            st.sampled_from(["compact", "compact", "prune", "shorten"]),
            st.integers(min_value=0, max_value=500),
        ),
    ),
    min_size=1,
    max_size=5,
)
Chapters = list[tuple[list[Act], list[Act], Act]]
