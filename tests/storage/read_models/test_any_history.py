"""Whatever was said and however it was read: followed rows are rebuilt rows, and say what is."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from databases import memory_folder
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)
from read_model_rows import rows_of, table

import cutbank
from cutbank import (
    Block,
    BlockKind,
    CompactionOptions,
    IdleRules,
    StoredSession,
    ToolCall,
    ToolResult,
)
from cutbank.adapters.storage.read_models.read_models import ReadModels
from cutbank.domain.compaction import derive_lineage_id
from cutbank.domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionFailed,
    CompactionReverted,
)
from cutbank.domain.errors import CutbankError
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.session_events import Parent, Usage
from cutbank.projections.session_row import SessionRow

POLICY = ReserveHeadroom(reserve_tokens=300, keep_tokens=300)
LIMIT = 3_000
DECIDE = {
    event.TOPIC
    for event in (BoundaryActivated, CompactBoundary, CompactionFailed, CompactionReverted)
}
TEXTS = st.sampled_from(["clay", "silt \ud83d half", "café", "a\0b", "note", '{"note": 1}'])
KINDS = st.sampled_from(
    [
        BlockKind.USER,
        BlockKind.ASSISTANT,
        BlockKind.NOTE,
        BlockKind.ARTIFACT,
        BlockKind.THINKING,
        BlockKind.DEVELOPER,
    ]
)
TOOLS = st.sampled_from(["bash", "Read", "write_file", "other"])


class Histories(RuleBasedStateMachine):
    """Agents and compactions at work, while read models follow in batches of any size."""

    sessions = Bundle("sessions")

    def __init__(self) -> None:
        super().__init__()
        self.made = memory_folder()
        self.folder = Path(self.made.name)
        self.store = cutbank.open(self.folder / "log.db", synchronous="NORMAL")
        self.models = self._opened("followed.db")
        self.number = 0

    def _opened(self, name: str) -> ReadModels:
        return ReadModels(self.store.events, str(self.folder / name))

    def teardown(self) -> None:
        try:
            self.models.catch_up()
            self.rows_are_those_of_a_rebuild()
            self.rows_say_what_is_so()
        finally:
            self.models.close()
            self.store.close()
            self.made.cleanup()

    def rows_are_those_of_a_rebuild(self) -> None:
        whole = self._opened("whole.db")
        try:
            whole.catch_up()
            followed = rows_of(self.models)
            assert followed == rows_of(whole)
            self.models.rebuild()
            assert rows_of(self.models) == followed
            ask = whole.file.fetch_rows
            assert ask("PRAGMA foreign_key_check") == []
            for (view,) in ask("SELECT name FROM sqlite_master WHERE type = 'view'"):
                ask(f"SELECT * FROM {view}")  # noqa: S608 - our own names
        finally:
            whole.close()

    def rows_say_what_is_so(self) -> None:
        rows = {row["key"]: row for row in table(self.models, "sessions")}
        assert set(rows) == {session.key for session in self.store.sessions()}
        for session in self.store.sessions():
            row, state, log = rows[session.key], session.log.state, session.log
            expected = {
                "view_tokens": session.view().tokens,
                "position": session.position,
                "turns": state.turn,
                "blocks": state.blocks,
                "tokens": state.tokens,
                "open_calls": len(state.open_calls),
                "closed": state.closed,
                "title": log.info.title,
                "parent_key": log.parent and log.parent.key,
                "parent_id": log.parent and rows[log.parent.key]["id"],
                "forked_from_id": log.info.forked_from and rows[log.info.forked_from.key]["id"],
            }
            assert {name: row[name] for name in expected} == expected
            due_at = SessionRow(**row).find_due_time(IdleRules(least_utilization=0), 0)
            assert (due_at is None) == self._has_nothing_to_do(session)
            for call in table(self.models, "model_calls", f"session_id = {row['id']}"):
                seen = session.view(
                    lineage=call["lineage"],
                    at=call["view_position"],
                    lineage_version=call["lineage_version"],
                )
                assert call["fingerprint"] == seen.fingerprint
            self._finds_every_block_once(session, row["id"])

    def _has_nothing_to_do(self, session: StoredSession) -> bool:
        state = session.log.state
        if state.open_calls or state.closed or session.log.parent:
            return True
        # What was decided on its views came after all that was said.
        main = derive_lineage_id(session.namespace, session.key, "main")
        decided = said = 0
        for row in self.store.events.recorder.select_notifications(1, 100_000):
            if row.originator_id == session.log.id:
                said = row.id
            elif row.originator_id == main and row.topic in DECIDE:
                event = self.store.events.mapper.to_domain_event(row)
                if not isinstance(event, CompactionFailed) or (event.after and not event.stood_in):
                    decided = row.id
        return decided > said

    def _finds_every_block_once(self, session: StoredSession, number: int) -> None:
        fork = session.info.forked_from
        said = session.recall(search="") if session.log.state.blocks else []
        found = table(self.models, "blocks", f"session_id = {number} AND kind != 'summary'")
        assert [(row["position"], row["kind"], row["turn"]) for row in found] == [
            (block.position, block.block.kind, block.turn)
            for block in said
            if fork is None or block.position > fork.position
        ]

    # What is said

    @initialize(target=sessions)
    def first(self) -> StoredSession:
        return self.store.session("first", title="the first")

    @rule(target=sessions, parent=st.booleans())
    def another(self, parent: bool) -> StoredSession:
        self.number += 1
        worked_for = Parent(namespace="default", key="first", tool_call_id="c1")
        return self.store.session(f"s{self.number}", parent=worked_for if parent else None)

    @rule(session=sessions, kind=KINDS, text=TEXTS, times=st.integers(1, 600))
    def say(self, session: StoredSession, kind: BlockKind, text: str, times: int) -> None:
        self._try(lambda: session.append(Block(kind=kind, text=f"{text} " * times)))

    @rule(session=sessions, tool=TOOLS, text=TEXTS)
    def call(self, session: StoredSession, tool: str, text: str) -> None:
        self.number += 1
        arguments = {"path": f"{text}.py", "command": f"make {text}"}
        block = ToolCall(tool_call_id=f"c{self.number}", name=tool, arguments=arguments)
        self._try(lambda: session.append(block))

    @rule(session=sessions, data=st.data(), text=TEXTS, times=st.integers(0, 1_200))
    def answer(self, session: StoredSession, data: Any, text: str, times: int) -> None:
        if session.log.state.open_calls:
            name = data.draw(st.sampled_from(sorted(session.log.state.open_calls)))
            is_error = data.draw(st.booleans())
            result = ToolResult(tool_call_id=name, content=f"{text} " * times, is_error=is_error)
            if data.draw(st.integers(0, 4)):
                self._try(lambda: session.append(result))
            else:
                self._try(lambda: session.cancel_tool_call(name, text))

    @rule(session=sessions, text=TEXTS)
    def request(self, session: StoredSession, text: str) -> None:
        self._try(lambda: session.configure(system_prompt=text * 9))
        self._try(lambda: session.configure(tools=[{"name": text}]))

    @rule(session=sessions, text=TEXTS)
    def title(self, session: StoredSession, text: str) -> None:
        self._try(lambda: session.configure(title=text.encode("ascii", "ignore").decode()))

    @rule(session=sessions, back=st.integers(0, 6))
    def retract(self, session: StoredSession, back: int) -> None:
        self._try(lambda: session.retract(max(1, session.position - back)))

    @rule(session=sessions, back=st.integers(0, 9), pins=st.booleans())
    def pin_or_hide(self, session: StoredSession, back: int, pins: bool) -> None:
        at = max(1, session.position - back)
        self._try(lambda: session.pin(at) if pins else session.hide(at))

    @rule(session=sessions, usage=st.none() | st.integers(1, 5_000), behind=st.booleans())
    def call_a_model(self, session: StoredSession, usage: int | None, behind: bool) -> None:
        view = session.view()
        if behind:  # the answer is stored before the call that it came from
            self._try(lambda: session.append(Block.assistant("said meanwhile")))
        reported = Usage(input=usage) if usage else None
        self._try(lambda: session.record_call(view, call_id=f"m{usage}", model="m", usage=reported))

    @rule(session=sessions, activate=st.booleans(), lineage=st.sampled_from(["main", "other"]))
    def compact(self, session: StoredSession, activate: bool, lineage: str) -> None:
        self._try(
            lambda: session.compact(
                POLICY, limit=LIMIT, options=CompactionOptions(lineage=lineage, activate=activate)
            )
        )

    @rule(session=sessions)
    def activate_or_revert(self, session: StoredSession) -> None:
        self._try(session.activate)
        self._try(session.revert)

    @rule(target=sessions, session=sessions, back=st.integers(0, 9))
    def fork(self, session: StoredSession, back: int) -> StoredSession:
        self.number += 1
        return session.fork(f"f{self.number}", at=max(1, session.position - back))

    @rule(session=sessions, really=st.integers(0, 5))
    def close(self, session: StoredSession, really: int) -> None:
        if not really:
            self._try(session.close)

    # How it is read

    @rule(page=st.integers(1, 40), batches=st.integers(1, 5), reopens=st.booleans())
    def follow(self, page: int, batches: int, reopens: bool) -> None:
        left = [batches]

        def until() -> bool:
            left[0] -= 1
            return left[0] < 0

        self.models._index.page = self.models._words.page = page
        self.models.catch_up(until=until)
        if reopens:
            self.models.close()
            self.models = self._opened("followed.db")

    def _try(self, act: Any) -> None:
        with suppress(CutbankError):  # refused: nothing was recorded, and nothing is to be read
            act()


def run(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Histories,
        settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None),
    )


def test_followed_rows_are_rebuilt_rows() -> None:
    run(10, 30)


@pytest.mark.slow
def test_followed_rows_are_rebuilt_rows_in_many_histories() -> None:
    run(50, 60)
