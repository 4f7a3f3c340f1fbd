"""Whatever is said, taken back and swapped in: the fold in memory is the fold of the log."""

from contextlib import suppress
from typing import Any

from databases import memory_folder
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from unpinned import UNPINNED

import cutbank
from cutbank import Block, CompactionOptions, ReserveHeadroom, ToolCall, ToolResult, Usage, verify
from cutbank.adapters.storage.view_reader import ViewReader
from cutbank.domain.errors import (
    InvalidPositionError,
    NotFoundError,
    NothingToCompactError,
    StalePlanError,
)
from cutbank.projections.history_view import HistoryFold

LIMIT = 2_000
POLICY = ReserveHeadroom(reserve_tokens=400, keep_tokens=200)
SIZES = st.integers(min_value=20, max_value=150)


class Swapping(RuleBasedStateMachine):
    """An agent whose boundaries are prepared, and who takes things back."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = memory_folder()
        database = f"{self.folder.name}/log.db"
        self.store = cutbank.open(database, synchronous="NORMAL", settings=UNPINNED)
        self.session = self.store.session("a session")
        self.loop = self.session.loop(policy=POLICY, limit=LIMIT)
        self.said: list[int] = []
        self.open: list[str] = []
        self.count = 0
        self.speaks = False
        """Whether somebody speaks between the look at the view to come and the swap."""
        compactor = self.loop._compactor
        self.activate, compactor.activate = compactor.activate, self._activate  # type: ignore[method-assign]

    def teardown(self) -> None:
        try:
            assert verify(self.store).violations == []
        finally:
            self.store.close()
            self.folder.cleanup()

    @rule(size=SIZES, times=st.integers(1, 4))
    def turns_pass(self, size: int, times: int) -> None:
        for _ in range(times):
            self._say(Block.user("ask " * size), Block.assistant("tell " * size))

    @rule(size=SIZES)
    def a_tool_is_called(self, size: int) -> None:
        self.count += 1
        self.open.append(f"c{self.count}")
        self._say(ToolCall(tool_call_id=self.open[-1], name="read", arguments="x" * size))

    @precondition(lambda self: self.open)
    @rule(size=SIZES)
    def a_tool_returns(self, size: int) -> None:
        self._say(ToolResult(tool_call_id=self.open.pop(0), content="y " * size))

    @rule(more=st.floats(0.7, 2.5))
    def a_model_answers(self, more: float) -> None:
        view = self.session.view()
        tokens = round(view.tokens * more)
        self.loop.record_call(view, usage=Usage(input=tokens, output=5), model="a model")

    @precondition(lambda self: self.said)
    @rule(data=st.data(), what=st.sampled_from(["pin", "hide", "replace", "retract"]))
    def a_person_changes_something(self, data: st.DataObject, what: str) -> None:
        at = data.draw(st.sampled_from(self.said))
        with suppress(InvalidPositionError):
            if what == "retract":
                gone = self.session.retract(at)
                self.said = [one for one in self.said if one not in gone]
                self.open = list(self.session.log.state.open_calls)
            elif what == "replace":
                self.session.hide(at, replacement="not for you")
            else:
                getattr(self.session, what)(at)

    @rule()
    def the_request_changes(self) -> None:
        self.count += 1
        self.session.configure(system_prompt=f"Be careful, {self.count} times.")

    @rule()
    def a_boundary_is_prepared(self) -> None:
        before = self.session.view()
        with suppress(NothingToCompactError):
            self.session.compact(POLICY, limit=LIMIT, options=CompactionOptions(activate=False))
        after = self.session.view()
        assert (after.entries, after.boundary) == (before.entries, before.boundary)

    @rule()
    def the_agent_asks(self) -> None:
        """Nothing of the tail is lost, and nothing is served that is not smaller."""
        before, prepared = self.session.view(), self.session.log.find_prepared()
        view = self.loop.prepare()
        assert view == self.session.view()
        if view.boundary == before.boundary:
            assert view.entries == before.entries
            return
        assert view.boundary is not None
        if view.boundary.originator_version == prepared:
            tail = [one for one in before.entries if one.position > view.boundary.after]
            shown = [one for one in view.entries if one.position > view.boundary.after]
            assert shown[: len(tail)] == tail
        assert self.session.log.find_prepared() is None

    @rule(
        data=st.data(),
        size=SIZES,
        times=st.integers(1, 6),
        what=st.sampled_from(["nothing", "pin", "hide", "retract"]),
        speaks=st.booleans(),
    )
    def it_is_prepared_and_grows(
        self, data: st.DataObject, size: int, times: int, what: str, *, speaks: bool
    ) -> None:
        """What mostly happens, and what happens to what was prepared meanwhile."""
        self.turns_pass(140, 5)
        self.a_boundary_is_prepared()
        if what != "nothing" and self.said:
            self.a_person_changes_something(data, what)
        self.turns_pass(size, times)
        self.speaks = speaks
        self.the_agent_asks()
        self.speaks = False

    @rule(what=st.sampled_from(["revert", "activate"]))
    def it_is_reverted_or_activated(self, what: str) -> None:
        with suppress(NotFoundError, StalePlanError):
            getattr(self.session, what)()

    @rule()
    def an_attempt_fails(self) -> None:
        if self.session.log.lineages:
            self.session.log.compactor().decisions.record_failure("a summarizer was away")

    @invariant()
    def the_fold_in_memory_is_the_fold_of_the_log(self) -> None:
        mine = self.session.log.reader("main")
        fresh = ViewReader(self.store.events, "default", "a session", "main")
        assert told(*mine.read_history()) == told(*fresh.read_history())

    def _activate(self, *boundary: Any, **details: Any) -> int:
        if self.speaks:
            self._say(Block.user("And this?"))
        return self.activate(*boundary, **details)

    def _say(self, *blocks: Any) -> None:
        done = self.session.append(*blocks)
        for at in range(done.first, done.last + 1):
            with suppress(InvalidPositionError):
                self.session.recall(at)
                self.said.append(at)


def told(history: HistoryFold, coordinate: object) -> dict[str, object]:
    """All that a fold says, and what is reckoned of it."""
    hidden = {"usage_tracker", "_sees", "entries"}
    return {name: value for name, value in vars(history).items() if name not in hidden} | {
        "at": coordinate,
        "entries": list(history.entries.values()),
        "use": history.measure_usage(),
        "sizes": history.usage_tracker.list_sizes(
            history.usage_tracker.find_calibration(), tuple(history.entries.values())
        ),
    }


def test_the_fold_is_the_same_whatever_is_swapped_in() -> None:
    run_state_machine_as_test(
        Swapping, settings=settings(max_examples=8, stateful_step_count=30, deadline=None)
    )
