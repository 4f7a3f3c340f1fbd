"""What the adapters of all frameworks promise, on both databases."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from databases import each_database
from framework_adapters import ADAPTERS, WORDS, Adapter, find_adapter, make_result

from cutbank import BlockKind, SessionStore, ToolCall, ToolResult, verify

SUPPORT = Path(__file__).parents[1] / "support"
LIMIT = 8_000
pytestmark = each_database


@pytest.fixture(params=ADAPTERS, ids=str)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    return find_adapter(request.param.framework)


def begin_adding(database: str, adapter: Adapter, first: int, turns: int) -> subprocess.Popen[str]:
    """Start a process that stores turns in the session `shared`."""
    code = (
        "import asyncio, sys; from framework_adapters import add_turns;"
        f"asyncio.run(add_turns(sys.argv[1], {adapter.framework!r}, {first}, {turns}))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, database],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(SUPPORT)},
    )


async def store_turns(adapter: Adapter, session: Any, turns: int, *, first: int = 0) -> list[Any]:
    """Store turns, each with one call, and return all items."""
    items: list[Any] = []
    for number in range(first, first + turns):
        turn = adapter.make_turn(number)
        await adapter.add(session, turn)
        items += turn
    return items


def test_items_come_back_field_for_field(adapter: Adapter, opened: SessionStore) -> None:
    async def run() -> None:
        session = adapter.open(opened, "a")
        items = await store_turns(adapter, session, 3)

        assert await adapter.read(session) == items
        assert await adapter.read(adapter.open(opened, "a")) == items

    asyncio.run(run())


def test_the_log_knows_texts_calls_and_results(adapter: Adapter, opened: SessionStore) -> None:
    session = adapter.open(opened, "a")
    asyncio.run(store_turns(adapter, session, 3))

    log = adapter.log(session)
    blocks = [one.block for one in log.blocks()]
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    results = [block for block in blocks if isinstance(block, ToolResult)]
    assert [call.name for call in calls] == ["read"] * 3
    assert [call.tool_call_id for call in calls] == [result.tool_call_id for result in results]
    assert [result.text for result in results] == [make_result(number) for number in range(3)]
    assert [one.block.text for one in log.blocks(kinds=[BlockKind.USER])] == [
        f"Question {number}?" for number in range(3)
    ]
    assert log.view().tokens > 3 * len(make_result(0)) // 4
    assert [hit.session for hit in opened.search('"quick brown lynx"')] == [log.key] * 3


def test_what_left_the_view_is_recalled_and_still_read_whole(
    adapter: Adapter, opened: SessionStore
) -> None:
    async def run() -> None:
        session = adapter.open(opened, "a")
        items = await store_turns(adapter, session, 40)
        log = adapter.log(session)
        outcome = log.compact(limit=LIMIT)

        assert outcome.compacted
        assert log.view().tokens < outcome.pre_tokens
        assert await adapter.read(session) == items
        (found,) = [one for one in log.recall(search="result 0:") if one.position in outcome.left]
        assert found.block.text == make_result(0)
        more = await store_turns(adapter, session, 2, first=40)
        assert await adapter.read(session) == items + more
        assert verify(opened).is_ok

    asyncio.run(run())


@pytest.mark.parametrize("adapter", [one for one in ADAPTERS if one.has_writers], ids=str)
def test_two_processes_add_to_one_session(
    adapter: Adapter, database: str, opened: SessionStore
) -> None:
    find_adapter(adapter.framework)
    adding = [begin_adding(database, adapter, first, 20) for first in (0, 100)]
    stored = [process.communicate(timeout=120)[0].split() for process in adding]

    assert [process.returncode for process in adding] == [0, 0]
    items = asyncio.run(adapter.read(adapter.open(opened, "shared")))
    turns = [adapter.make_turn(number) for number in (*range(20), *range(100, 120))]
    assert [len(numbers) for numbers in stored] == [20, 20]
    assert len(items) == sum(map(len, turns))
    assert all(item in items for turn in turns for item in turn)
    assert verify(opened).is_ok


def test_a_killed_process_leaves_whole_turns_and_all_it_was_told_are_stored(
    adapter: Adapter, database: str, opened: SessionStore
) -> None:
    with begin_adding(database, adapter, 0, 10_000) as process:
        assert process.stdout
        told = [process.stdout.readline() for _ in range(5)]
        process.kill()
        told += process.stdout.readlines()

    items = asyncio.run(adapter.read(adapter.open(opened, "shared")))
    turns, rest = divmod(len(items), len(adapter.make_turn(0)))
    assert turns >= len([line for line in told if line.endswith("\n")]) >= 5
    written = [item for number in range(turns + 1) for item in adapter.make_turn(number)]
    assert items == written[: len(items)]
    assert not (rest and adapter.stores_turns)
    assert verify(opened).is_ok


def test_a_deleted_session_is_new_and_erased_words_are_in_no_file(
    adapter: Adapter, database: str, opened: SessionStore, tmp_path: Path
) -> None:
    async def run() -> None:
        session = adapter.open(opened, "a")
        await store_turns(adapter, session, 3)
        opened.delete(adapter.log(session))
        again = adapter.open(opened, "a")
        assert await adapter.read(again) == []
        await store_turns(adapter, again, 2)
        opened.erase(adapter.log(again))
        assert await adapter.read(adapter.open(opened, "a")) == []

    asyncio.run(run())
    opened.close()
    files = [file.read_bytes() for file in tmp_path.glob("test.db*")]
    assert "://" in database or files
    assert not any(WORDS.encode() in content for content in files)


def test_a_cancelled_append_is_whole_or_absent(adapter: Adapter, opened: SessionStore) -> None:
    async def run() -> None:
        session = adapter.open(opened, "a")
        for number in range(20):
            adding = asyncio.ensure_future(adapter.add(session, adapter.make_turn(number)))
            for _ in range(number % 4):
                await asyncio.sleep(0)
            adding.cancel()
            await asyncio.gather(adding, return_exceptions=True)
            items = await adapter.read(session)
            assert not (len(items) % len(adapter.make_turn(0)) and adapter.stores_turns)
        stored = len(await adapter.read(session))
        await store_turns(adapter, session, 1, first=20)
        assert len(await adapter.read(session)) == stored + len(adapter.make_turn(0))

    asyncio.run(run())
