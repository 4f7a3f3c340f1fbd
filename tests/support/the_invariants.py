"""The ten invariants of docs/design.md, each a property, together in one state machine."""

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from uuid import UUID

import pytest
from databases import asked, memory_folder, new_schema
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from provider_rules import check_anthropic, check_openai_chat, check_openai_responses

import cutbank
from cutbank import (
    Block,
    CompactionOptions,
    ConflictError,
    CutbankError,
    HistoryView,
    InvalidPositionError,
    Item,
    NotFoundError,
    NothingToCompactError,
    SessionStore,
    StalePlanError,
    StoredSession,
    ToolCall,
    ToolResult,
    list_items,
)
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.compaction.outcome import CompactionOutcome
from cutbank.adapters.storage.view_reader import ViewReader
from cutbank.domain.compaction_events import Trim
from cutbank.domain.item import group_blocks
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.domain.window import Plan, Window
from cutbank.projections.history_view import HistoryFold
from cutbank.projections.rendering.catalog import render_view

LIMIT = 3_000
LIMITS = st.integers(min_value=1_500, max_value=6_000)
POLICY = ReserveHeadroom(reserve_tokens=300, keep_tokens=300, summary_tokens=300)
LOG = (
    "SELECT notification_id, originator_id, originator_version, digest, state"
    " FROM stored_events ORDER BY notification_id"
)
WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0") | st.sampled_from(" \n#<>\"'"),
    min_size=1,
    max_size=40,
)
SIZES = st.integers(min_value=20, max_value=200)


def long(words: str, size: int) -> str:
    """A text of `size` times 16 characters, so that a few of them are worth compacting."""
    return (words * size * 16)[: size * 16]


@dataclass
class Wants:
    """A policy that plans what the test says, and has no settings."""

    name: ClassVar[str] = "wants"

    def __init__(self, plans: Callable[[Window], Plan | None]) -> None:
        self._plans = plans

    def plan(self, window: Window) -> Plan | None:
        return self._plans(window)


@dataclass(frozen=True)
class Scripted:
    """A summarizer that does what the test says while it is asked."""

    name: str
    says: Callable[[Material], Draft]

    def summarize(self, material: Material) -> Draft:
        return self.says(material)


@dataclass
class Model:
    """What the test knows of one session, kept without looking at the store."""

    session: StoredSession
    said: dict[int, Any] = field(default_factory=dict)
    """Every block that was acknowledged, by position."""
    calls: dict[int, str] = field(default_factory=dict)
    """Position to id of every call."""
    results: dict[int, int] = field(default_factory=dict)
    """Position of a result to the position of its call."""
    items: dict[int, tuple[set[int], Any]] = field(default_factory=dict)
    """Position of an item's last block to those of all its blocks, and its JSON."""
    retracted: set[int] = field(default_factory=set)
    records: dict[int, tuple[str, Any, bool]] = field(default_factory=dict)
    """Every record by position: its name, its value, and whether it was removed."""
    served: dict[tuple[int, str, int], tuple[str, Any]] = field(default_factory=dict)
    """Every coordinate that was looked at: fingerprint and body."""
    newest: HistoryView | None = None
    was_retracted_since: bool = False

    def copy(self) -> "Model":
        """What is known now, whatever is said later."""
        return replace(
            self,
            said=dict(self.said),
            calls=dict(self.calls),
            results=dict(self.results),
            items=dict(self.items),
            records=dict(self.records),
        )

    def alive(self) -> list[int]:
        """Positions of what was said and not taken back."""
        return [at for at in sorted(self.said) if at not in self.retracted]

    def open_calls(self) -> dict[str, int]:
        answered = {call for at, call in self.results.items() if at not in self.retracted}
        return {
            name: at
            for at, name in self.calls.items()
            if at not in answered and at not in self.retracted
        }


class TheInvariants(RuleBasedStateMachine):
    """Agents, people and compactions at work on a few sessions of one store."""

    sessions = Bundle("sessions")

    server: str | None = None
    """The server whose database is used; without one, a file."""

    def __init__(self) -> None:
        super().__init__()
        self.gone_at_the_end = ExitStack()
        if self.server is None:
            folder = self.gone_at_the_end.enter_context(memory_folder())
            self.database = f"{folder}/log.db"
        else:
            self.database = self.gone_at_the_end.enter_context(new_schema(self.server))
        self.store = self._opened()
        self.models: dict[str, Model] = {}
        self.rows: list[tuple[Any, ...]] = []
        self.counter = 0

    def _opened(self) -> SessionStore:
        return cutbank.open(self.database, synchronous="NORMAL")

    def teardown(self) -> None:
        try:
            assert verify(self.store).violations == []
            # Invariant 1: no operation changed or deleted a stored event.
            assert asked(self.store, LOG)[: len(self.rows)] == self.rows
            for model in self.models.values():
                _assert_recalled(model, list(model.said))
                _assert_recorded(model)
                self.invariant_4_a_coordinate_stays_one_view(model, list(model.served))
        finally:
            self.store.close()
            self.gone_at_the_end.close()
            # Hypothesis holds on to its machines; hundreds of them need not hold on to this.
            self.models.clear()
            self.rows.clear()

    # What agents and people do

    @initialize(target=sessions)
    def a_session_is_opened(self) -> str:
        self.models["s0"] = Model(self.store.session("s0"))
        return "s0"

    @rule(key=sessions, words=WORDS, size=SIZES, pieces=st.integers(1, 3))
    def the_user_speaks(self, key: str, words: str, size: int, pieces: int) -> None:
        self._append(key, *(Block.user(long(words, size)) for _ in range(pieces)))

    @rule(key=sessions, words=WORDS, size=SIZES, calls=st.integers(0, 4), thinks=st.booleans())
    def the_model_answers(
        self, key: str, words: str, size: int, calls: int, *, thinks: bool
    ) -> None:
        self.counter += 1
        message = f"m{self.counter}"
        blocks: list[Any] = [Block.thinking(words, message_id=message)] if thinks else []
        blocks.append(Block.assistant(long(words, size), message_id=message))
        blocks += [
            ToolCall(
                tool_call_id=f"c{self.counter}.{number}",
                name="read",
                arguments={"path": f"src/{number}.py", "_type_": "x", "_data_": 1},
                message_id=message,
            )
            for number in range(calls)
        ]
        self._append(key, *blocks)

    @rule(key=sessions, words=WORDS, size=SIZES, turns=st.integers(1, 4))
    def turns_pass(self, key: str, words: str, size: int, turns: int) -> None:
        """What most of a session is: prompts, parallel calls and their results."""
        for _ in range(turns):
            self.the_user_speaks(key, words, size, 1)
            self.the_model_answers(key, words, size, 2, thinks=True)
            for name in list(self.models[key].open_calls())[-2:]:
                result = ToolResult(tool_call_id=name, content=long(words, size))
                self._append(key, result)

    @rule(key=sessions, data=st.data(), words=WORDS, size=SIZES, failed=st.booleans())
    def a_tool_returns(
        self, key: str, data: st.DataObject, words: str, size: int, *, failed: bool
    ) -> None:
        waiting = sorted(self.models[key].open_calls())
        if waiting:
            name = data.draw(st.sampled_from(waiting))
            result = ToolResult(tool_call_id=name, content=long(words, size), is_error=failed)
            self._append(key, result)

    @rule(key=sessions, words=WORDS, size=SIZES, calls=st.integers(0, 3), says=st.booleans())
    def a_framework_appends_its_items(
        self, key: str, words: str, size: int, calls: int, *, says: bool
    ) -> None:
        """A message of the model, and one of the user with all results, and perhaps a prompt."""
        self.counter += 1
        names = [f"f{self.counter}.{number}" for number in range(calls)]
        spoken, arguments = long(words, size), {"path": f"src/{words}.py", "lines": [1, 2.5]}
        parts = [{"input": arguments, "type": "tool_use", "id": name} for name in names]
        asks = [ToolCall(tool_call_id=name, name="read", arguments=arguments) for name in names]
        said = {"role": "assistant", "content": [{"text": spoken}, *parts], "z": 0, "a": None}
        self._append_item(key, Item(said, [Block.assistant(spoken), *asks], "framework"))
        answers: list[Any] = [ToolResult(tool_call_id=name, content=spoken) for name in names]
        contents: list[Any] = [{"tool_use_id": name, "content": spoken} for name in names]
        if says or not calls:
            answers.append(Block.user(spoken + "?"))
            contents.append(spoken + "?")
        if words != "#":  # sometimes they come later
            answered = {"role": "user", "content": contents}
            self._append_item(key, Item(answered, answers, "framework"))

    @rule(key=sessions, data=st.data())
    def a_call_is_abandoned(self, key: str, data: st.DataObject) -> None:
        waiting = sorted(self.models[key].open_calls())
        if waiting:
            name = data.draw(st.sampled_from(waiting))
            self._abandon(key, name)

    @rule(
        key=sessions,
        words=WORDS,
        size=SIZES,
        turns=st.integers(1, 4),
        answered=st.lists(st.booleans(), min_size=1, max_size=3),
    )
    def calls_are_answered_late_or_interrupted(
        self, key: str, words: str, size: int, turns: int, answered: list[bool]
    ) -> None:
        """Turns pass meanwhile; what nobody answers is abandoned in the end."""
        self.the_model_answers(key, words, size, len(answered), thinks=False)
        late = list(self.models[key].open_calls())[-len(answered) :]
        self.the_user_speaks(key, words, size, 1)
        self.turns_pass(key, words, size, turns)
        for name, is_answered in zip(late, answered, strict=True):
            if is_answered:
                self._append(key, ToolResult(tool_call_id=name, content=long(words, size)))
            else:
                self._abandon(key, name)

    @rule(key=sessions, words=WORDS)
    def a_result_without_a_call_is_refused(self, key: str, words: str) -> None:
        session = self.models[key].session
        before = session.position
        with pytest.raises(CutbankError):
            session.append(Block.user(words), ToolResult(tool_call_id="nobody", content=words))
        assert session.position == before

    @rule(key=sessions, words=WORDS)
    def the_same_key_is_the_same_append(self, key: str, words: str) -> None:
        model = self.models[key]
        self.counter += 1
        name = f"append {self.counter}"
        block = Block.developer(words)
        first = model.session.append(block, key=name)
        again = model.session.append(block, key=name)
        assert (again.first, again.last, again.is_repeated) == (first.first, first.last, True)
        with pytest.raises(ConflictError):
            model.session.append(Block.developer(f"{words} else"), key=name)
        assert model.session.position == first.last
        model.said[first.last] = block

    @rule(key=sessions, data=st.data(), back=st.integers(1, 6))
    def the_user_rewinds(self, key: str, data: st.DataObject, back: int) -> None:
        model = self.models[key]
        alive = model.alive()
        if alive:
            self._retract(model, Ranges.span(alive[-min(back, len(alive))], model.session.position))

    @rule(key=sessions, data=st.data())
    def one_block_is_retracted(self, key: str, data: st.DataObject) -> None:
        model = self.models[key]
        alive = model.alive()
        if alive:
            self._retract(model, Ranges.of([data.draw(st.sampled_from(alive))]))

    @rule(key=sessions, pops=st.integers(1, 3))
    def the_newest_blocks_are_popped(self, key: str, pops: int) -> None:
        model = self.models[key]
        for _ in range(pops):
            # The record that a call was abandoned takes the place of its result.
            newest = max({*model.said, *model.results} - model.retracted, default=None)
            popped = model.session.pop()
            assert (popped and popped.position) == newest
            pieces, item = model.items.get(newest or 0, ({newest} if newest else set(), None))
            assert (popped and popped.item) == item
            model.retracted |= pieces
            model.was_retracted_since = True

    @rule(key=sessions)
    def everything_is_cleared(self, key: str) -> None:
        model = self.models[key]
        model.session.clear()
        model.retracted |= {*model.said, *model.results}
        model.was_retracted_since = True

    @rule(key=sessions, data=st.data(), what=st.sampled_from(["pin", "unpin", "hide", "replace"]))
    def a_block_is_pinned_or_hidden(self, key: str, data: st.DataObject, what: str) -> None:
        model = self.models[key]
        alive = model.alive()
        if alive:
            at = data.draw(st.sampled_from(alive))
            session = model.session
            before = session.view().entries
            if what == "replace":
                session.hide(at, replacement="not for you")
            elif what == "hide":
                session.hide(at)
            else:
                session.pin(at, keep=what == "pin")
            # Invariant 5: pins and hides take effect at the next boundary.
            assert session.view().entries == before

    @precondition(lambda self: len(self.models) < 4)
    @rule(target=sessions, key=sessions, data=st.data())
    def the_session_is_forked(self, key: str, data: st.DataObject) -> str:
        model = self.models[key]
        head = model.session.position
        at = data.draw(st.integers(max(1, head - 30), head))
        name = f"s{len(self.models)}"
        before = model.session.view(at=at)
        fork = model.session.fork(name, at=at)
        assert fork.view().entries == before.entries
        self.models[name] = Model(
            fork,
            said={p: b for p, b in model.said.items() if p <= at},
            calls={p: c for p, c in model.calls.items() if p <= at},
            results={p: c for p, c in model.results.items() if p <= at},
            items={p: i for p, i in model.items.items() if p <= at},
            records={p: r for p, r in model.records.items() if p <= at},
            # What was taken back up to the fork is in no view and no summary.
            retracted=set(range(1, at + 1)).difference(*_places(fork.view())),
        )
        return name

    @rule(
        key=sessions,
        name=st.sampled_from(["a", "a/1", "b"]),
        value=st.none() | WORDS | st.binary(max_size=9) | st.just("large " * 2_000),
        removes=st.booleans(),
    )
    def a_record_is_put_or_removed(self, key: str, name: str, value: Any, *, removes: bool) -> None:
        """It is no part of any view, count or turn, whatever becomes of the blocks around it."""
        model = self.models[key]
        view, state = model.session.view(), model.session.info.state
        if removes:
            newest = [gone for put, _, gone in model.records.values() if put == name]
            had = newest[-1:] == [False]
            assert model.session.records.remove(name) == had
            if had:
                model.records[model.session.position] = (name, None, True)
        else:
            model.records[model.session.records.put(name, value)] = (name, value, False)
        after = model.session.view()
        assert (after.entries, after.fingerprint) == (view.entries, view.fingerprint)
        assert model.session.info.state == state

    @rule(key=sessions, other=sessions, words=WORDS, is_undone=st.booleans())
    def sessions_are_written_in_one_batch(
        self, key: str, other: str, words: str, *, is_undone: bool
    ) -> None:
        """All of it is stored, or nothing."""
        models = {name: self.models[name] for name in (key, other)}
        before = {name: (one.session.view(), one.copy()) for name, one in models.items()}
        with suppress(ConnectionError), self.store.batch():
            for name, model in models.items():
                self.the_user_speaks(name, words, 20, 2)
                self.the_model_answers(name, words, 20, 2, thinks=False)
                self.a_record_is_put_or_removed(name, "in a batch", words, removes=False)
                model.session.pin(model.alive()[-1])
            if is_undone:
                raise ConnectionError("the other service is down")
        if is_undone:
            for name, (view, model) in before.items():
                self.models[name] = model
                assert model.session.view() == view
                assert model.session.position == view.coordinate.position

    @rule(key=sessions, words=WORDS)
    def the_session_is_deleted(self, key: str, words: str) -> None:
        """Its name begins again; forks keep what they share."""
        others = {name: one.session.view() for name, one in self.models.items() if name != key}
        self.store.delete(key, by="the test")
        assert key not in [session.key for session in self.store.sessions()]
        with pytest.raises(NotFoundError):
            self.models[key].session.view()
        self._begin_again(key, words)
        for name, view in others.items():
            assert self.models[name].session.view() == view

    @rule(key=sessions, words=WORDS)
    def the_session_is_erased(self, key: str, words: str) -> None:
        """Invariant 1: it alone changes stored events, and takes nothing but their content."""
        before = asked(self.store, LOG)
        report = self.store.erase(key, forks=True, by="the test")
        after = asked(self.store, LOG)
        gone = {one.originator_id for one in self.store.events.recorder.select_deleted()}
        for old, new in zip(before, after, strict=False):
            assert old[:-1] == new[:-1]
            stream = UUID(bytes=old[1]) if isinstance(old[1], bytes) else old[1]
            assert old[-1] == new[-1] or stream in gone
        self.rows = after
        assert verify(self.store).violations == []
        for _, name in report.sessions:
            self._begin_again(name, words)

    def _begin_again(self, key: str, words: str) -> None:
        session = self.store.session(key)
        self.models[key] = Model(session)
        self._append(key, Block.user(words))
        assert [entry.block.text for entry in session.view().entries] == [words]

    @rule()
    def the_store_is_reopened(self) -> None:
        views = {key: model.session.view() for key, model in self.models.items()}
        self.store.close()
        self.store = self._opened()
        for key, model in self.models.items():
            model.session = self.store.session(key, create=False)
            again = model.session.view()
            assert again == views[key]
            assert again.fingerprint == views[key].fingerprint

    # What compactions do

    @rule(key=sessions, instructions=st.none() | WORDS, limit=LIMITS)
    def it_is_compacted(self, key: str, instructions: str | None, limit: int) -> None:
        self._compact(key, instructions=instructions, limit=limit)

    @rule(key=sessions, limit=LIMITS)
    def it_is_compacted_until_it_fits(self, key: str, limit: int) -> None:
        """Invariant 7: it fits, or an error names what cannot leave: pins, open calls, a giant."""
        session = self.models[key].session
        for _ in range(4):
            if session.view().tokens <= limit or self._compact(key, limit=limit) is None:
                break
        view = session.view()
        if view.tokens > limit:
            with pytest.raises(NothingToCompactError, match=r"largest blocks are #\d+"):
                session.compact(POLICY, limit=limit)
            assert view.tokens - self._unmovable(key, view) <= limit

    @rule(key=sessions, data=st.data(), limit=LIMITS)
    def a_shortened_result_is_pinned(self, key: str, data: st.DataObject, limit: int) -> None:
        session = self.models[key].session
        shown = [entry for entry in session.view().entries if entry.call is not None]
        if shown:
            entry = data.draw(st.sampled_from(shown))
            trim = Trim(position=entry.position, head=60, tail=20)
            self._compact(key, plan=Plan(None, "the test wants it", 0, trims=(trim,)), limit=limit)
            session.pin(entry.position)

    @rule(key=sessions, data=st.data())
    def it_is_pruned(self, key: str, data: st.DataObject) -> None:
        """Any blocks may be named to leave; no pair is parted, and none is lost."""
        positions = [entry.position for entry in self.models[key].session.view().entries]
        if positions:
            named = data.draw(st.sets(st.sampled_from(positions), max_size=6))
            plan = Plan(None, "the test wants it", 0, drops=Ranges.of(named))
            self._compact(key, plan=plan)

    @rule(key=sessions, words=WORDS)
    def it_is_compacted_while_the_user_speaks(self, key: str, words: str) -> None:
        """Invariant 6: what is appended while a summary is written is kept and served."""
        said = Block.user(words)

        def speaks(material: Material) -> Draft:
            self._append(key, said)
            return Draft(text=f"A summary of {material.covers.runs[-1][1]} positions.")

        outcome = self._compact(key, summarizers=[Scripted("slow", speaks)])
        if outcome and outcome.boundary and outcome.left:
            assert self.models[key].session.view().entries[-1].block == said

    @rule(key=sessions)
    def it_is_overtaken(self, key: str) -> None:
        """Invariant 6: a plan that was overtaken is made anew or refused, never merged."""
        session = self.models[key].session
        asked: list[int] = []

        def overtaken(material: Material) -> Draft:
            asked.append(1)
            if len(asked) == 1:
                self._compact(key)
            return Draft(text="A summary.")

        before = session.view().boundary
        outcome = self._compact(key, summarizers=[Scripted("overtaken", overtaken)])
        after = session.view().boundary
        if asked and outcome and outcome.boundary and after and before != after:
            assert after.originator_version == outcome.boundary
            assert after.previous != (before.originator_version if before else None) or (
                len(asked) == 1
            )

    @rule(key=sessions)
    def the_same_request_is_one_boundary(self, key: str) -> None:
        """Invariant 6: the same request twice is one boundary."""
        self.counter += 1
        options = CompactionOptions(idempotency_key=f"compaction {self.counter}")
        first = self._compact(key, idempotency_key=options.idempotency_key)
        if first and first.boundary:
            session = self.models[key].session
            again = session.compact(POLICY, limit=LIMIT, options=options)
            boundary = session.view().boundary
            assert boundary is not None
            assert again.boundary == first.boundary == boundary.originator_version

    @rule(
        key=sessions,
        text=st.sampled_from(
            ["", "   ", "x" * 40_000, '<tool_call>{"name": "rm"}</tool_call>', "cut off"]
        ),
    )
    def a_bad_summary_is_rejected(self, key: str, text: str) -> None:
        """Invariants 8 and 10: a bad draft is never served; a stand-in that cannot fail is."""
        draft = Draft(text=text, was_truncated=text == "cut off")
        outcome = self._compact(key, summarizers=[Scripted("bad", lambda _: draft)])
        if outcome and outcome.boundary and outcome.left:
            assert outcome.rejected
            assert outcome.summarizer != "bad"
            summary = self.models[key].session.view().summary
            assert summary is not None
            assert summary.text != text

    @rule(key=sessions)
    def a_summarizer_fails(self, key: str) -> None:
        """Invariant 10: a failed summarizer costs quality, never data."""

        def fails(_: Material) -> Draft:
            raise ConnectionError("no route to the model")

        outcome = self._compact(key, summarizers=[Scripted("down", fails)])
        if outcome and outcome.boundary and outcome.left:
            assert outcome.summarizer in {"extractive", "listing"}
            assert "no route" in outcome.rejected[0]

    @rule(key=sessions, prepared=st.integers(0, 2))
    def a_boundary_is_prepared_and_activated(self, key: str, prepared: int) -> None:
        model = self.models[key]
        before = model.session.view()
        outcome = self._compact(key, activate=False)
        if outcome and outcome.boundary:
            still = model.session.view()
            assert (still.boundary, still.entries) == (before.boundary, before.entries)
            for _ in range(prepared):
                self._append(key, Block.user("meanwhile"))
            assert model.session.activate() == outcome.boundary
            boundary = model.session.view().boundary
            assert boundary is not None
            assert boundary.originator_version == outcome.boundary
            self._after_boundary(model)

    @rule(key=sessions, words=WORDS, size=SIZES, turns=st.integers(1, 4), speaks=st.booleans())
    def what_was_prepared_is_served_at_the_threshold(
        self, key: str, words: str, size: int, turns: int, *, speaks: bool
    ) -> None:
        """A prepared boundary is served or dropped, and the blocks behind it stay in view.

        That holds even if another writer appends just before the loop prepares its view.
        """
        model = self.models[key]
        self.turns_pass(key, words, 100, 3)
        self._compact(key, activate=False)
        self.turns_pass(key, words, size, turns)
        before, prepared = model.session.view(), model.session.log.find_prepared()
        loop = model.session.loop(policy=POLICY, limit=max(LIMIT, before.tokens))
        activate = loop._compactor.activate

        def speak_and_activate(*boundary: Any, **details: Any) -> int:
            if speaks:
                self._append(key, Block.user(words))
            return activate(*boundary, **details)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop._compactor, "activate", speak_and_activate)
            view = loop.prepare()
        model.newest = None
        assert view == model.session.view()
        if view.boundary == before.boundary:
            assert view.entries == before.entries
            return
        assert view.boundary is not None
        assert model.session.log.find_prepared() is None
        if view.boundary.originator_version == prepared:
            tail = [one for one in before.entries if one.position > view.boundary.after]
            shown = [one for one in view.entries if one.position > view.boundary.after]
            assert shown[: len(tail)] == tail
            self._after_boundary(model)

    @rule(key=sessions)
    def it_is_reverted(self, key: str) -> None:
        model = self.models[key]
        try:
            model.session.revert()
        except NotFoundError:
            assert model.session.view().boundary is None
        model.newest = None

    @rule(key=sessions)
    def a_call_is_recorded(self, key: str) -> None:
        self.counter += 1
        session = self.models[key].session
        session.record_call(session.view(), call_id=f"call {self.counter}")

    # What must hold after each of these

    @invariant()
    def the_invariants_hold(self) -> None:
        self.invariant_1_the_log_only_grows()
        for model in self.models.values():
            view = model.session.view()
            if view != model.newest:
                self.invariant_2_every_block_has_one_fate(model, view)
                self.invariant_3_tool_pairs_are_whole(model, view)
                self.invariant_4_the_fold_in_memory_is_the_fold_of_the_log(model)
                body = render_view(view, "neutral")
                at = view.coordinate
                coordinate = (at.position, at.lineage, at.lineage_version)
                model.served[coordinate] = (view.fingerprint, body)
                # One a few steps back now, and all of them in the end.
                self.invariant_4_a_coordinate_stays_one_view(model, list(model.served)[-6:-5])
                self.invariant_5_the_prefix_is_stable(model, view)
                self.invariant_9_nothing_dropped_is_unreachable(model, view, body)
                self.items_come_back_as_they_were_given(model, view)

    def invariant_1_the_log_only_grows(self) -> None:
        """Note what came; in the end the log has to begin with all that was noted."""
        newest = self.rows[-1][0] if self.rows else 0
        self.rows += asked(
            self.store, LOG.replace("ORDER", f"WHERE notification_id > {newest} ORDER")
        )

    def invariant_2_every_block_has_one_fate(self, model: Model, view: HistoryView) -> None:
        shown, covers, hidden = _places(view)
        assert not shown & covers
        assert not shown & hidden
        assert not shown & model.retracted
        for at in model.said:
            assert at in model.retracted | shown | covers | hidden, f"#{at} is nowhere"

    def invariant_3_tool_pairs_are_whole(self, model: Model, view: HistoryView) -> None:
        shown = {entry.position for entry in view.entries}
        for at, call in model.results.items():
            if at not in model.retracted:
                assert (at in shown) == (call in shown), f"#{call} and #{at} are parted"
        for name, at in model.open_calls().items():
            assert at in shown, f"the open call {name} at #{at} is hidden"
        assert check_anthropic(render_view(view, "anthropic")) == []
        assert check_openai_chat(render_view(view, "openai-chat")) == []
        assert check_openai_responses(render_view(view, "openai-responses")) == []

    def invariant_4_the_fold_in_memory_is_the_fold_of_the_log(self, model: Model) -> None:
        session = model.session
        if session.info.state.cleared:
            return  # of what was cleared nothing is read again
        new_reader = ViewReader(self.store.events, session.namespace, session.key, "main")
        in_memory = session.log.reader("main").read_history()
        assert _describe_fold(*in_memory) == _describe_fold(*new_reader.read_history())

    def invariant_4_a_coordinate_stays_one_view(
        self, model: Model, coordinates: list[tuple[int, str, int]]
    ) -> None:
        for position, lineage, version in coordinates:
            again = model.session.view(at=position, lineage=lineage, lineage_version=version)
            seen = (again.fingerprint, render_view(again, "neutral"))
            assert seen == model.served[position, lineage, version]

    def invariant_5_the_prefix_is_stable(self, model: Model, view: HistoryView) -> None:
        before, model.newest = model.newest, view
        if before and before.boundary == view.boundary and not model.was_retracted_since:
            assert view.entries[: len(before.entries)] == before.entries
        model.was_retracted_since = False

    def invariant_9_nothing_dropped_is_unreachable(
        self, model: Model, view: HistoryView, body: Any
    ) -> None:
        shown = {entry.position for entry in view.entries}
        gone = [at for at in model.said if at not in shown and at not in model.retracted]
        named = _named_in(body)
        for at in gone:
            assert at in named, f"#{at} is in no range that the view names"
        _assert_recalled(model, gone[:3])

    def items_come_back_as_they_were_given(self, model: Model, view: HistoryView) -> None:
        """Whole or not at all, in the log and in views; only shortened texts differ there."""
        stored = {one.position: one.item for one in model.session.blocks() if one.item is not None}
        alive = {at: item for at, (_, item) in model.items.items() if at not in model.retracted}
        assert json.dumps(stored) == json.dumps(alive)
        shown = {entry.position: entry.shown for entry in view.entries}
        for item in list_items(view, "framework"):
            positions = [entry.position for entry in item.entries]
            if positions and positions[-1] in alive:
                pieces, given = model.items[positions[-1]]
                if item.json is not None:
                    assert positions == sorted(pieces)
                    is_same = json.dumps(item.json) == json.dumps(given)
                    assert is_same == all(shown[at] is None for at in positions)
                else:
                    assert any(shown[at] is not None for at in pieces)

    # How

    def _append_item(self, key: str, item: Item) -> None:
        model = self.models[key]
        done = model.session.append(item)
        recalled = model.session.recall(Ranges.span(done.first, done.last))
        # Several blocks share a message id, which the store gives them.
        shared = [{"message_id": one.block.message_id} for one in recalled]
        blocks = [
            block.model_copy(update=id) for block, id in zip(item.blocks, shared, strict=True)
        ]
        self._know(model, [one.position for one in recalled], blocks)
        model.items[done.last] = ({one.position for one in recalled}, json.loads(item.text))

    def _append(self, key: str, *blocks: Any) -> None:
        model = self.models[key]
        before = model.session.position
        done = model.session.append(*blocks)
        appended = model.session.recall(Ranges.span(before + 1, done.last))
        self._know(model, [one.position for one in appended], blocks)

    def _know(self, model: Model, positions: list[int], blocks: Sequence[Any]) -> None:
        for at, block in zip(positions, blocks, strict=True):
            model.said[at] = block
            if isinstance(block, ToolCall):
                model.calls[at] = block.tool_call_id
            elif isinstance(block, ToolResult):
                model.results[at] = next(
                    call for call, name in model.calls.items() if name == block.tool_call_id
                )

    def _abandon(self, key: str, name: str) -> None:
        model = self.models[key]
        call = model.open_calls()[name]
        model.session.cancel_tool_call(name, "nobody answers")
        model.results[model.session.position] = call

    def _unmovable(self, key: str, view: HistoryView) -> int:
        """Tokens of what no cut may take out, and of the largest of what stays as a whole.

        A pin of a block that left is in no view yet, but the next cut has to bring the block back.
        """
        session = self.models[key].session
        windows: list[Window] = []
        with suppress(NothingToCompactError):
            session.compact(Wants(windows.append), limit=LIMIT)
        shown = {entry.position: entry.tokens for entry in view.entries}
        open_calls = self.models[key].open_calls().values()
        groups = [
            (
                sum(shown.get(item.position, item.tokens) for item in group),
                any(item.is_pinned or item.position in open_calls for item in group),
            )
            for group in group_blocks(windows[0].items)
        ]
        held = sum(tokens for tokens, is_held in groups if is_held)
        return held + max((tokens for tokens, is_held in groups if not is_held), default=0)

    def _retract(self, model: Model, positions: Ranges) -> None:
        model.was_retracted_since = True
        try:
            model.retracted |= set(model.session.retract(positions))
        except InvalidPositionError:
            assert not any(at in positions for at in model.said if at not in model.retracted)

    def _compact(self, key: str, **how: Any) -> CompactionOutcome | None:
        model = self.models[key]
        before = model.session.view()
        try:
            plan, limit = how.pop("plan", None), how.pop("limit", LIMIT)
            policy = Wants(lambda _: plan) if plan else POLICY
            options = CompactionOptions(**how)
            outcome = model.session.compact(policy, limit=limit, options=options)
        except (NothingToCompactError, StalePlanError):
            # Invariant 7: what does not gain is not recorded.
            if "summarizers" not in how:
                # That it was tried is recorded, and changes nothing of what is served.
                after = model.session.view()
                assert (after.boundary, after.entries) == (before.boundary, before.entries)
                assert after.fingerprint == before.fingerprint
            return None
        # Invariant 7: progress.
        assert outcome.post_tokens < outcome.pre_tokens
        if how.get("activate", True):
            self._after_boundary(model)
        return outcome

    def _after_boundary(self, model: Model) -> None:
        model.newest = None
        view = model.session.view()
        boundary = view.boundary
        assert boundary is not None
        # Its figures are those of what was shown before it, and of what is shown from it on.
        before = model.session.view(
            at=boundary.after, lineage_version=boundary.originator_version - 1
        )
        later = sum(entry.tokens for entry in view.entries if entry.position > boundary.after)
        assert boundary.pre_tokens == before.tokens
        assert boundary.post_tokens == view.tokens - later
        if view.summary is None:
            assert boundary.trims
            return
        assert view.summary.text.strip()
        # Invariant 8: a summary never passes for the user's own words.
        body = render_view(view, "anthropic")
        first = body["messages"][0]["content"]
        text = first if isinstance(first, str) else first[0]["text"]
        assert text != view.summary.text
        assert "summary" in text[:200].lower()


def _assert_recalled(model: Model, positions: list[int]) -> None:
    recalled = model.session.recall(Ranges.of(positions)) if positions else []
    said = {at: model.said[at] for at in positions}
    assert {each.position: each.block for each in recalled} == said


def _assert_recorded(model: Model) -> None:
    records, newest = model.session.records, {}
    for at, (name, value, is_removed) in sorted(model.records.items()):
        found = records.get(name, at=at)
        assert (found is None) == is_removed
        assert found is None or (found.position, found.value) == (at, value)
        newest[name] = (at, is_removed)
        history = [(one.position, one.is_removed) for one in records.history(name, limit=99)]
        assert (at, is_removed) in history
    there = {name: at for name, (at, is_removed) in newest.items() if not is_removed}
    assert {one.name: one.position for one in records.newest()} == there


def _places(view: HistoryView) -> tuple[set[int], set[int], set[int]]:
    """Positions that a view shows, those that its summary covers, and those that are hidden."""
    return (
        {entry.position for entry in view.entries},
        set(view.summary.covers if view.summary else ()),
        set(view.boundary.hidden if view.boundary else ()),
    )


def _describe_fold(history: HistoryFold, coordinate: object) -> dict[str, object]:
    """Return the fields of a fold, and the sizes that are estimated from it."""
    hidden = {"usage_tracker", "_sees", "entries"}
    entries, tracker = tuple(history.entries.values()), history.usage_tracker
    return {name: value for name, value in vars(history).items() if name not in hidden} | {
        "at": coordinate,
        "entries": entries,
        "use": history.measure_usage(),
        "sizes": tracker.list_sizes(tracker.find_calibration(), entries),
    }


def _named_in(body: Any) -> Ranges:
    """The handles that a neutral view says have left: `#1-80 #84`."""
    summaries = [m for m in body["messages"] if m.get("kind") == "summary"]
    runs = []
    for summary in summaries:
        for word in (summary["covers"] + " " + summary["hidden"]).split():
            first, _, last = word.removeprefix("#").partition("-")
            runs.append((int(first), int(last or first)))
    return Ranges(runs)
