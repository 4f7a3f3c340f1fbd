"""Transcripts of the Claude Agent SDK are stored by cutbank, as the SDK demands of a store."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pytest
from databases import each_database
from framework_adapters import find_adapter, make_claude_turn
from loopback.answers import Says, Tokens
from loopback.providers import KEY
from loopback.server import Loopback, loopback

import cutbank
from cutbank import BlockKind, SessionStore

ROOT = Path(__file__).parents[2]
MAIN = {"project_key": "project", "session_id": "main"}
SUB = {**MAIN, "subpath": "subagents/agent-1"}


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    find_adapter("claude_agent_sdk")


def open_transcripts(store: SessionStore | Path | str) -> Any:
    return import_module("cutbank.frameworks.claude_agent").CutbankSessionStore(store)


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_the_contracts_of_the_sdk_hold(loop: str, tmp_path: Path) -> None:
    check = import_module("claude_agent_sdk.testing").run_session_store_conformance
    stores: list[Any] = []

    def make_store() -> Any:
        stores.append(open_transcripts(tmp_path / f"{len(stores)}.db"))
        return stores[-1]

    if loop == "asyncio":
        asyncio.run(check(make_store))
    else:
        import_module("trio").run(check, make_store)

    assert len(stores) >= 14
    for store in stores:
        store.close()


@each_database
def test_a_batch_that_is_sent_again_is_stored_once(opened: SessionStore) -> None:
    async def run() -> None:
        transcripts = open_transcripts(opened)
        first, second = make_claude_turn(0)[1:], make_claude_turn(1)[1:]
        await transcripts.append(MAIN, first)
        (before,) = await transcripts.list_sessions("project")
        await transcripts.append(MAIN, [*first, *second, second[0]])

        assert await transcripts.load(MAIN) == first + second
        (after,) = await transcripts.list_sessions("project")
        assert after["mtime"] > before["mtime"]

    asyncio.run(run())


def test_with_a_limit_an_agent_resumes_from_the_view(tmp_path: Path) -> None:
    query = (
        "import asyncio, sys; from claude_agent_sdk import *;"
        "from cutbank.frameworks.claude_agent import CutbankSessionStore\n"
        "async def main():\n"
        "    store = CutbankSessionStore('log.db', policy='reserve-headroom', limit=8_000)\n"
        "    options = ClaudeAgentOptions(session_store=store, resume=sys.argv[1], max_turns=20)\n"
        "    async for message in query(prompt='And now?', options=options):\n"
        "        print(getattr(message, 'result', ''), end='')\n"
        "asyncio.run(main())"
    )
    id = "11111111-2222-4333-8444-555555555555"
    project = import_module("claude_agent_sdk").project_key_for_directory(str(tmp_path))
    key = {"project_key": project, "session_id": id}
    turns = [make_claude_turn(number)[1:] for number in range(40)]
    parent = None
    for entry in (one for turn in turns for one in turn):
        entry |= {"parentUuid": parent, "sessionId": id, "cwd": str(tmp_path)}
        entry |= {"timestamp": "2026-01-01T00:00:00.000Z", "isSidechain": False}
        parent = entry["uuid"] = str(uuid5(UUID(int=0), entry["uuid"]))
    with cutbank.open(tmp_path / "log.db") as store:
        for turn in turns:
            asyncio.run(open_transcripts(store).append(key, turn))
    with loopback(lambda _: Says("Water it.")) as server:
        said = run_program("-c", query, id, server=server, cwd=tmp_path)

    assert said == "Water it."
    sent = server.requests[-1].body["messages"]
    assert "conversation-summary" in str(sent[0])
    assert "Question 39?" in str(sent)
    assert "Question 3?" not in str(sent[1:])
    assert "And now?" in str(sent[-2:])
    assert len(sent) < 60
    with cutbank.open(tmp_path / "log.db") as store:
        whole = asyncio.run(open_transcripts(store).load(key))
        spoken = open_transcripts(store).log(key).blocks(kinds=["user"])
        assert whole[:200] == [entry for turn in turns for entry in turn]
        assert [one.block.text for one in spoken][-2:] == ["Question 39?", "And now?"]


@each_database
def test_a_shortened_result_is_resumed_as_one(opened: SessionStore) -> None:
    transcripts = import_module("cutbank.frameworks.claude_agent").CutbankSessionStore(
        opened, policy="reserve-headroom", limit=8_000
    )
    texts = [{"type": "text", "text": "word " * 50}] * 2
    for number in range(40):
        turn = make_claude_turn(number)
        if number == 39:
            turn[4]["message"]["content"][0]["content"] = texts
        asyncio.run(transcripts.append(MAIN, turn))
    log = transcripts.log(MAIN)
    (result,) = log.blocks(last=1, kinds=["tool_result"])
    log.hide(result.position, replacement="[cut]")

    entries = asyncio.run(transcripts.load(MAIN))

    assert "conversation-summary" in str(entries[0])
    assert entries[-2]["message"]["content"] == [
        {"type": "tool_result", "tool_use_id": "call-39", "content": "[cut]"}
    ]
    parents = [entry["parentUuid"] for entry in entries]
    assert parents == [None, *(entry["uuid"] for entry in entries[:-1])]
    assert asyncio.run(transcripts.load({**MAIN, "session_id": "none"})) is None


@each_database
def test_a_sub_agents_transcript_is_a_child_that_goes_with_its_parent(opened: SessionStore) -> None:
    async def run() -> None:
        transcripts = open_transcripts(opened)
        await transcripts.append(MAIN, make_claude_turn(0))
        await transcripts.append(SUB, make_claude_turn(1))
        await transcripts.append({**MAIN, "session_id": "mainly"}, make_claude_turn(2))

        parent = transcripts.log(SUB).info.parent
        assert (parent.namespace, parent.key) == ("claude/project", "main")
        assert await transcripts.list_subkeys(MAIN) == ["subagents/agent-1"]
        await transcripts.delete(MAIN)
        assert await transcripts.load(SUB) is None
        assert [one["session_id"] for one in await transcripts.list_sessions("project")] == [
            "mainly"
        ]

    asyncio.run(run())


@each_database
def test_what_is_no_message_is_a_note_and_one_answer_is_one_message(opened: SessionStore) -> None:
    transcripts = open_transcripts(opened)
    asyncio.run(transcripts.append(MAIN, make_claude_turn(0)))

    blocks = list(transcripts.log(MAIN).blocks())
    assert [one.block.kind for one in blocks] == [
        *(BlockKind.NOTE, BlockKind.USER, BlockKind.THINKING, BlockKind.TOOL_CALL),
        *(BlockKind.TOOL_RESULT, BlockKind.ASSISTANT),
    ]
    assert [one.block.message_id for one in blocks[2:4]] == ["msg_0"] * 2
    assert len(transcripts.log(MAIN).view().entries) == 5


def make_answer(id: str, *outputs: int, model: str = "claude-sonnet-4-5") -> list[dict[str, Any]]:
    """Return the entries of one answer, each with what was counted until then."""
    return [
        {
            "type": "assistant",
            "uuid": f"{id}-{at}",
            "message": {
                "id": id,
                "type": "message",
                "role": "assistant",
                "model": model,
                "content": [{"type": "text", "text": f"Piece {at}."}],
                "usage": {
                    "input_tokens": 10,
                    "cache_read_input_tokens": 2_000,
                    "output_tokens": output,
                },
            },
        }
        for at, output in enumerate(outputs)
    ]


@each_database
def test_each_answer_is_one_call_whose_last_count_holds(opened: SessionStore) -> None:
    transcripts = open_transcripts(opened)
    prompt = make_claude_turn(0)[1:2]
    first, second = make_answer("msg_1", 1, 300, 2), make_answer("msg_2", 1, 40)
    other = make_answer("msg_3", 7, model="<synthetic>")
    other += make_answer("msg_4", 7)
    other[1]["message"]["usage"]["output_tokens"] = "many"
    asyncio.run(transcripts.append(MAIN, [*prompt, *first[:1]]))
    asyncio.run(transcripts.append(MAIN, [*prompt, *first, second[0]]))
    asyncio.run(transcripts.append(MAIN, [second[1], *other]))
    asyncio.run(transcripts.append(MAIN, [*second, *other]))
    asyncio.run(transcripts.append(SUB, [*prompt, *make_answer("msg_5", 5)]))

    log = transcripts.log(MAIN)
    blocks = list(log.blocks())
    reports = [call.report for call in cutbank.audit(log).calls if call.report]
    assert [
        (one.call_id, one.model, one.usage and one.usage.output, one.fingerprint) for one in reports
    ] == [
        ("msg_1", "claude-sonnet-4-5", 300, None),
        ("msg_2", "claude-sonnet-4-5", 40, None),
    ]
    assert [blocks[0].position, blocks[3].position] == [one.position for one in reports]
    assert cutbank.measure_context(log).in_use.tokens > 2_010 + 40
    costs = opened.costs().total
    assert costs.calls == 3
    assert costs.cost_usd == pytest.approx(3 * (10 * 3 + 2_000 * 0.3) / 1e6 + 345 * 15 / 1e6)
    assert cutbank.verify(opened).is_ok


def run_program(*arguments: str, server: Loopback, cwd: Path) -> str:
    """Run Python with a model on the loopback and a home of its own; return what it printed."""
    own = {"HOME": str(cwd), "CLAUDE_CONFIG_DIR": str(cwd / "config"), "IS_SANDBOX": "1"}
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1"}
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        check=False,
        cwd=cwd,
        text=True,
        env=os.environ | own | quiet | {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_agent_is_resumed_from_the_log_alone(tmp_path: Path) -> None:
    script = str(ROOT / "scripts" / "example_claude_agent.py")
    with loopback(lambda _: Says("Hello to you.")) as server:
        said = []
        for prompt in ("First?", "Second?"):
            said.append(run_program(script, "log.db", prompt, server=server, cwd=tmp_path))
            # The files of the SDK's own program are gone: the log alone has the transcript.
            shutil.rmtree(tmp_path / "config", ignore_errors=True)

    assert said == ["Hello to you.\n"] * 2
    assert "First?" in str(server.requests[-1].body["messages"])
    with cutbank.open(tmp_path / "log.db") as store:
        (session,) = store.sessions()
        spoken = [one.block.text for one in session.blocks(kinds=["user", "assistant"])]
        total = store.costs().total
    assert spoken == ["First?", "Hello to you.", "Second?", "Hello to you."]
    assert (total.calls, total.output_tokens) == (2, 2 * Tokens().output)
    assert total.cost_usd > 0


@pytest.mark.parametrize("where", ["module", "page"])
def test_the_program_that_a_reader_sees_runs(where: str, tmp_path: Path) -> None:
    doc = import_module("cutbank.frameworks.claude_agent").__doc__ or ""
    program = "\n".join(line[4:] for line in doc.splitlines() if line[:4] in ("    ", ""))
    if where == "page":
        page = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
        (program,) = re.findall(r"## Claude Agent SDK\n\n```python\n(.*?)```", page, re.DOTALL)
    with loopback(lambda _: Says("Hello to you.")) as server:
        assert "Hello to you." in run_program("-c", program, server=server, cwd=tmp_path)
