"""The steps of Pydantic AI's harness are kept in sessions of cutbank."""

import asyncio
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from databases import each_database
from framework_adapters import make_pydantic_ai_turn
from framework_programs import read_programs, run_program
from loopback.answers import Says
from loopback.server import loopback

import cutbank
from cutbank import BlockKind, NotFoundError, SessionStore, verify

if find_spec("pydantic_ai_harness") is None:
    pytest.skip(
        "pydantic_ai_harness is not installed: scripts/test-frameworks has it",
        allow_module_level=True,
    )

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from pydantic_ai_harness.step_persistence import (
    ContinuableSnapshot,
    RunRecord,
    StepEvent,
    StepPersistence,
    StepStore,
    ToolEffectRecord,
    continue_run,
)

from cutbank.frameworks.pydantic_ai import CutbankHistory, load_messages
from cutbank.frameworks.pydantic_ai_harness import CutbankStepStore


def make_snapshot(turns: int, key: str | None = None, **fields: Any) -> ContinuableSnapshot:
    messages = load_messages(
        [one for number in range(turns) for one in make_pydantic_ai_turn(number)]
    )
    return ContinuableSnapshot(
        run_id="r", step_index=turns, messages=messages, idempotency_key=key, **fields
    )


@each_database
def test_a_run_is_kept_with_its_steps_and_shares_its_messages(opened: SessionStore) -> None:
    async def run() -> None:
        steps = CutbankStepStore(opened)
        assert isinstance(steps, StepStore)
        capabilities: list[Any] = [StepPersistence(store=steps), CutbankHistory(opened)]
        agent = Agent(TestModel(), capabilities=capabilities)

        @agent.tool_plain
        def read(path: str) -> str:
            return f"{path}: " + "line after line " * 20

        done = await agent.run("What does it need?", conversation_id="t")

        (record,) = await steps.list_runs(conversation_id="t")
        assert await steps.get_run(run_id=record.run_id) == record
        assert await steps.list_runs(conversation_id="other") == []
        kinds = [event.kind for event in await steps.list_events(run_id=record.run_id)]
        assert kinds[0] == "run_started"
        assert kinds[-1] == "run_completed"
        assert kinds.count("tool_call_completed") == 1
        snapshot = await steps.latest_snapshot(run_id=record.run_id)
        assert snapshot is not None
        assert snapshot.messages == done.all_messages()
        assert await continue_run(steps, run_id=record.run_id) == done.all_messages()
        assert await steps.list_unresolved_tool_effects(run_id=record.run_id) == []

    asyncio.run(run())
    session = opened.session("t", create=False)
    kinds = [BlockKind.USER, BlockKind.TOOL_RESULT]
    assert len(list(session.blocks(kinds=kinds))) == 2
    assert verify(opened).is_ok


@each_database
def test_a_snapshot_keeps_messages_that_a_later_one_has_no_more(opened: SessionStore) -> None:
    async def run() -> None:
        steps = CutbankStepStore(opened)
        first = make_snapshot(3, conversation_id="t")
        last = replace(make_snapshot(1, conversation_id="t"), state="interrupted")
        await steps.save_snapshot(first)
        await steps.save_snapshot(last)

        assert await steps.latest_snapshot(run_id="r") == first
        assert await steps.latest_snapshot(run_id="r", include_interrupted=True) == last
        assert await steps.list_snapshots(run_id="r") == [first]
        assert await steps.list_snapshots(run_id="r", include_interrupted=True) == [first, last]
        assert len(list(opened.session("t").blocks(kinds=[BlockKind.USER]))) == 1

    asyncio.run(run())


@each_database
def test_what_is_sent_again_is_stored_once(opened: SessionStore) -> None:
    async def run() -> None:
        steps = CutbankStepStore(opened)
        event = StepEvent(run_id="r", kind="run_started", step_index=0, idempotency_key="0:a")
        await steps.append_event(event)
        await steps.append_event(replace(event, error="later"))
        assert await steps.list_events(run_id="r") == [event]

        for turns, key in [(1, "1:a"), (2, "2:b"), (3, "2:b"), (1, "1:c"), (3, "2:c")]:
            await steps.save_snapshot(make_snapshot(turns, key))
        stored = await steps.list_snapshots(run_id="r")
        assert [one.idempotency_key for one in stored] == ["1:a", "2:b", "2:c"]
        assert [len(one.messages) for one in stored] == [4, 8, 12]

    asyncio.run(run())


@each_database
def test_a_call_without_an_end_is_unresolved(opened: SessionStore) -> None:
    async def run() -> None:
        steps = CutbankStepStore(opened)
        begun = [
            ToolEffectRecord(run_id="r", tool_call_id=call, tool_name="write", status="started")
            for call in ("a", "b")
        ]
        for effect in begun:
            await steps.record_tool_effect(effect)
        await steps.record_tool_effect(replace(begun[0], status="completed"))

        assert await steps.list_unresolved_tool_effects(run_id="r") == [begun[1]]
        found = await steps.get_tool_effect(run_id="r", tool_call_id="a")
        assert found == replace(begun[0], status="completed")
        assert await steps.get_tool_effect(run_id="other", tool_call_id="a") is None

    asyncio.run(run())


@each_database
def test_a_run_of_another_has_messages_of_its_own(opened: SessionStore) -> None:
    async def run() -> None:
        steps = CutbankStepStore(opened)
        outer = make_snapshot(2, conversation_id="t")
        inner = replace(make_snapshot(1, conversation_id="t"), run_id="i", parent_run_id="r")
        await steps.register_run(RunRecord(run_id="i", conversation_id="t", parent_run_id="r"))
        await steps.save_snapshot(outer)
        await steps.save_snapshot(inner)

        assert await steps.latest_snapshot(run_id="r") == outer
        assert await steps.latest_snapshot(run_id="i") == inner
        assert [one.run_id for one in await steps.list_runs(parent_run_id="r")] == ["i"]

    asyncio.run(run())
    parent = opened.session("t/i", create=False).info.parent
    assert parent is not None
    assert parent.key == "t"


@each_database
def test_a_snapshot_of_a_deleted_conversation_says_so(opened: SessionStore) -> None:
    async def run() -> None:
        steps = CutbankStepStore(opened)
        await steps.save_snapshot(make_snapshot(1, conversation_id="t"))
        opened.delete("t")
        with pytest.raises(NotFoundError):
            await steps.latest_snapshot(run_id="r")
        opened.session("t").append(cutbank.Block.user("Hello"))
        with pytest.raises(NotFoundError, match="were deleted with the session 't'"):
            await steps.latest_snapshot(run_id="r")

    asyncio.run(run())


@pytest.mark.parametrize("where", ["module", "page"])
def test_the_program_that_a_reader_sees_runs(where: str, tmp_path: Path) -> None:
    program = read_programs("pydantic_ai_harness", "Pydantic AI's harness")[where]

    with loopback(lambda _: Says("Hello to you.")) as server:
        assert run_program("-c", program, server=server, cwd=tmp_path) == ["Hello to you."]
