"""At every boundary each block has exactly one fate, and nothing bound together is parted."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.compaction_events import CompactBoundary, Summary, Trigger, Trim
from cutbank.domain.coverage import Fate, Settlement, fate, settle
from cutbank.domain.cut_points.bonds import bound
from cutbank.domain.errors import NothingToCompactError
from cutbank.domain.ranges import Ranges
from cutbank.domain.window import Item, Plan, Window

Act = tuple[str, int]


@dataclass
class Story:
    """A session in which everything happens that can happen to a view, and its one lineage."""

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
        self._append(Block.user("words"))

    def assistant(self, n: int) -> None:
        """One message: thinking, words and up to three calls."""
        message = f"message-{self.head}" if n % 5 else None
        if n % 2:
            self._append(Block.thinking("thoughts", message_id=message))
        if n % 3:
            self._append(Block.assistant("words", message_id=message))
        for _ in range(n % 4):
            call = ToolCall(tool_call_id=str(self.head + 1), name="tool", message_id=message)
            self.open_calls.append(self._append(call))

    def result(self, n: int) -> None:
        if self.open_calls:
            call = self.open_calls.pop(n % len(self.open_calls))
            self._append(ToolResult(tool_call_id=str(call), content="x" * 200), call)

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
        for group in bound(everything):
            if any(item.position in recalled for item in group):
                visible |= {item.position for item in group}
        return Window(
            items=tuple(self._item(at) for at in sorted(visible)),
            after=self.head,
            limit=100,
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

    def _item(self, at: int) -> Item:
        block, turn, call = self.blocks[at]
        return Item(
            position=at,
            block=block,
            turn=turn,
            tokens=1,
            call=call,
            is_open=at in self.open_calls,
            is_pinned=at in self.pinned,
        )

    # What is decided

    def fate(self, at: int) -> Fate | None:
        return fate(at, self.boundary, self.summary, self.retracted)

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
        window = self.window()
        try:
            settlement = settle(window, plan)
        except NothingToCompactError:
            return None
        self.generation += 1
        self.boundary = boundary(settlement, self.generation)
        self.summary = summary(settlement, self.generation)
        self.hides = {}
        self.retracted_since = Ranges()
        return settlement


ENVELOPE = {
    "originator_id": UUID(int=1),
    "timestamp": datetime(2026, 1, 1, tzinfo=UTC),
    "subject": "s",
}


def boundary(settlement: Settlement, version: int) -> CompactBoundary:
    return CompactBoundary(
        **ENVELOPE,
        originator_version=version,
        after=settlement.after,
        first_kept=settlement.first_kept,
        kept=settlement.kept,
        pinned=settlement.pinned,
        hidden=settlement.hidden,
        trims=settlement.trims,
        replacements=settlement.replacements,
        split_turn=settlement.split_turn,
        trigger=Trigger.MANUAL,
        policy="p",
        pre_tokens=1,
        post_tokens=1,
    )


def summary(settlement: Settlement, version: int) -> Summary:
    return Summary(
        **ENVELOPE,
        originator_version=version,
        boundary=version,
        text="what happened",
        covers=settlement.covers,
        summariser="s",
        tokens=1,
    )


def told(*acts: str) -> Story:
    """A story of acts, as `user`, `assistant 3` or `compact 5`."""
    story = Story()
    for act in acts:
        verb, _, n = act.partition(" ")
        getattr(story, verb)(int(n or 0))
    return story


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


@settings(max_examples=400, deadline=None)
@given(chapters)
def test_whatever_happens_every_boundary_obeys_the_rules(told: Chapters) -> None:
    story = Story()
    for talk, acts, (how, plan) in told:
        for verb, n in (*talk, *acts):
            getattr(story, verb)(n)
        before, covered = story.window(), story.summary.covers if story.summary else Ranges()
        fates = {at: story.fate(at) for at in story.blocks}
        settlement: Settlement | None = getattr(story, how)(plan)
        if settlement is not None:
            every_block_has_one_fate(story, settlement)
            nothing_is_parted(story, settlement, before)
            pins_and_open_calls_stay(story, settlement)
            what_was_done_to_a_block_lasts(story, fates)
            something_goes(settlement, before, covered)
            what_stays_is_told_apart(story, settlement, before)
    event(f"{story.generation} generations")


def every_block_has_one_fate(story: Story, settlement: Settlement) -> None:
    kept, hidden, covers = settlement.kept, settlement.hidden, settlement.covers

    assert not kept & hidden
    assert not kept & covers
    assert not hidden & covers
    assert not (kept | hidden | covers) & story.retracted
    assert kept | hidden | covers | story.retracted == Ranges.span(1, settlement.after)
    for at in story.blocks:
        found = story.fate(at)
        assert found is not None
        assert (found is Fate.RETRACTED) == (at in story.retracted)
        assert (found is Fate.SUMMARISED) == (at in covers)
        assert (found in {Fate.PINNED, Fate.TRIMMED, Fate.VISIBLE}) <= (at in kept)


def nothing_is_parted(story: Story, settlement: Settlement, before: Window) -> None:
    for group in bound(before.open_to_cut):
        assert len({item.position < settlement.first_kept for item in group}) == 1
    kept, covers = settlement.kept, settlement.covers
    for at, (block, _, call) in story.blocks.items():
        if at in story.retracted:
            continue
        if call is not None:
            assert (at in kept) == (call in kept)
        for other, (piece, _, _) in story.blocks.items():
            if block.message_id and piece.message_id == block.message_id and other in covers:
                assert at not in kept


def pins_and_open_calls_stay(story: Story, settlement: Settlement) -> None:
    assert set(settlement.pinned) == story.pinned
    assert all(at in settlement.kept for at in (*story.pinned, *story.open_calls))
    for at in story.pinned:
        assert story.fate(at) is Fate.PINNED


def what_was_done_to_a_block_lasts(story: Story, fates: dict[int, Fate | None]) -> None:
    for at, earlier in fates.items():
        if at not in story.pinned:
            assert (earlier is Fate.HIDDEN) <= (story.fate(at) is Fate.HIDDEN)
            assert (earlier is Fate.TRIMMED) <= (story.fate(at) is not Fate.VISIBLE)


def something_goes(settlement: Settlement, before: Window, covered: Ranges) -> None:
    gone = Ranges.of(item.position for item in settlement.gone)

    earlier = before.boundary.trims if before.boundary else ()
    assert gone or set(settlement.trims) - set(earlier)
    assert gone - settlement.covers == Ranges()
    assert not gone & covered
    assert list(settlement.gone) == [item for item in before.items if item.position in gone]
    assert settlement.kept_tokens <= len(before.items) - len(gone)


def what_stays_is_told_apart(story: Story, settlement: Settlement, before: Window) -> None:
    first, stays = settlement.first_kept, settlement.kept | settlement.hidden
    shortened = [trim.position for trim in settlement.trims]
    replaced = [replacement.position for replacement in settlement.replacements]

    stays |= Ranges.of(item.position for item in settlement.gone)
    assert all(item.position in stays for item in before.items if item.position >= first)
    one_by_one = [*shortened, *replaced, *settlement.pinned]
    assert len(set(one_by_one)) == len(one_by_one)
    assert all(at in settlement.kept for at in (*shortened, *replaced))
    if split := settlement.split_turn:
        assert split.prefix
        assert not split.prefix - settlement.covers
        assert split.turn == story.blocks[first][1]
        assert split.turn == story.blocks[split.prefix.runs[0][0]][1]


# Each of these was once wrong, or is easy to get wrong.


def test_a_pinned_piece_leaves_nothing_of_its_message_to_go() -> None:
    story = told("user", "assistant 7", "results", "pin 0", "pin 2")

    with pytest.raises(NothingToCompactError, match=r"no legal cut .* #2 user 1 tokens \(pinned\)"):
        settle(story.window(), Plan(cut=7, reason="", summary_tokens=1))


def test_a_call_carried_over_a_boundary_stays_with_a_result_that_came_later() -> None:
    story = told("user", "assistant 21", "user", "user", "compact 5", "user", "result", "user")

    settlement = story.compact(6)

    assert settlement is not None
    assert [item.position for item in settlement.gone] == [5]
    assert Ranges.span(3, 4) - settlement.kept == Ranges()


def test_a_call_carried_over_a_boundary_leaves_with_its_result() -> None:
    story = told("user", "assistant 21", "user", "user", "compact 5", "user", "result", "user")

    settlement = story.compact(9)

    assert settlement is not None
    assert [item.position for item in settlement.gone] == [3, 4, 5, 6, 7, 8]


def test_what_was_hidden_behind_a_text_is_not_told_when_the_text_leaves() -> None:
    story = told("user", "user", "user", "hide 3", "user", "compact 3")
    assert story.boundary is not None
    assert [r.position for r in story.boundary.replacements] == [3]

    settlement = told_on(story, "user").compact(6)

    assert settlement is not None
    assert [item.position for item in settlement.gone] == [4]
    assert 3 in settlement.hidden
    assert 3 not in settlement.covers


def test_of_a_hidden_pair_a_pin_brings_back_both_halves_the_other_behind_a_text() -> None:
    story = told("user", "user", "assistant 21", "result", "user", "user")
    told_on(story, "hide 6", "hide 8", "compact 8", "user")
    assert story.boundary is not None
    assert list(story.boundary.hidden) == [5, 6]

    settlement = told_on(story, "pin 3").compact(11)

    assert settlement is not None
    assert list(settlement.kept) == [4, 5, 6, 11]
    assert list(settlement.hidden) == []
    assert [story.fate(at) for at in (4, 5, 6)] == [Fate.VISIBLE, Fate.PINNED, Fate.HIDDEN]


def test_a_pin_brings_back_what_was_hidden_behind_the_cut() -> None:
    story = told("user", "user", "user", "user", "hide 4", "compact 3", "user")
    assert story.boundary is not None
    assert list(story.boundary.hidden) == [4]

    settlement = told_on(story, "pin 2").compact(4)

    assert settlement is not None
    assert list(settlement.kept) == [4, 5, 6, 7]
    assert list(settlement.hidden) == []


def test_a_split_turn_begins_with_what_leaves_of_it() -> None:
    story = told("user", "assistant 1", "results", "assistant 1", "results", "pin 0")

    settlement = story.compact(7)

    assert settlement is not None
    assert settlement.split_turn is not None
    assert list(settlement.split_turn.prefix) == [3, 4, 5, 6]


def test_a_turn_of_which_only_pins_are_left_behind_is_not_split() -> None:
    story = told("user", "assistant 1", "results", "user", "assistant 1", "pin 3")

    settlement = story.compact(7)

    assert settlement is not None
    assert settlement.split_turn is None


def told_on(story: Story, *acts: str) -> Story:
    for act in acts:
        verb, _, n = act.partition(" ")
        getattr(story, verb)(int(n or 0))
    return story
