"""Agents of the OpenAI Agents SDK run on a session of cutbank, with a model on the loopback."""

import asyncio
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from framework_adapters import find_adapter, make_openai_turn
from framework_programs import ROOT, read_programs, run_program
from loopback.answers import Answer, Call, Refuses, Request, Says, Tokens, Why
from loopback.providers import KEY
from loopback.server import Loopback, loopback

import cutbank
from cutbank import BlockKind, SessionStore, audit

LIMIT = 8_000


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    find_adapter("agents")


def answer_with_a_call(request: Request) -> Answer:
    """Call the tool twice, one after the other, and then answer."""
    items = request.body["input"]
    asked = max(at for at, item in enumerate(items) if item.get("role") == "user")
    results = [one for one in items[asked:] if one.get("type") == "function_call_output"]
    usage = Tokens(input=len(str(items)) // 4)
    if len(results) < 2:
        call = Call("read", {"path": f"{len(results)}.py"}, f"call_{request.number}")
        return Says(calls=(call,), usage=usage)
    return Says("It needs water.", usage=usage)


def open_session(store: SessionStore | Path, **fields: Any) -> Any:
    from cutbank.frameworks.openai_agents import CutbankSession  # noqa: PLC0415 - not everywhere

    return CutbankSession("a", store, limit=LIMIT, **fields)


def run_example(database: Path, server: Loopback, turns: int) -> list[str]:
    script = str(ROOT / "scripts" / "example_openai_agents.py")
    limits = ("--turns", str(turns), "--limit", str(LIMIT))
    return run_program(script, str(database), *limits, server=server, cwd=database.parent)


def check_pairs(items: list[dict[str, Any]]) -> None:
    """Check what the provider demands: each result after its call, each call with its result."""
    calls: list[str] = []
    results: list[str] = []
    for item in items:
        match item.get("type"):
            case "function_call":
                calls.append(item["call_id"])
            case "function_call_output":
                assert item["call_id"] in calls
                results.append(item["call_id"])
            case _:
                pass
    assert sorted(calls) == sorted(results)


def test_an_agent_goes_on_while_its_history_is_compacted(tmp_path: Path, server: Loopback) -> None:
    said = run_example(tmp_path / "log.db", server, 6) + run_example(tmp_path / "log.db", server, 2)

    assert said == ["It needs water."] * 8
    sent = [request.body["input"] for request in server.requests]
    assert len(sent) == 8 * 3
    for items in sent:
        check_pairs(items)
    with cutbank.open(tmp_path / "log.db") as store:
        log = store.session("example", create=False)
        results = list(log.blocks(kinds=[BlockKind.TOOL_RESULT]))
        assert len(results) == 16
        assert len(sent[-1]) < len([one for one in log.blocks() if one.item])
        assert log.view().boundary is not None
        sizes = [len(str(items)) for items in sent]
        # In the middle of a turn as well: not only the first call of one was sent less than before.
        assert any(sizes[at] < sizes[at - 1] for at in range(len(sizes)) if at % 3)
        reports = [call.report for call in audit(log).calls if call.report]
        assert [report.renderer for report in reports] == ["openai-agents/1"] * len(sent)
        assert {report.model for report in reports} == {server.requests[0].model}
        assert log.view().system_prompt == "Read the file that you are asked about."
        assert all(report.usage for report in reports)
        import_module("cutbank.frameworks.openai_agents")  # brings the format of its calls
        (view,) = [one for one in [cutbank.audit_call(log, len(sent)).view] if one]
        assert view.render("openai-agents") == {"input": sent[-1]}


def check_prompts(items: list[dict[str, Any]]) -> None:
    """Check that the newest prompt is sent once, and last."""
    assert str(items[-1]["content"]).startswith("What does this file need?")
    assert items[-2:-1] != items[-1:]


@pytest.mark.parametrize("way", ["by name", "streamed", "model of the agent"])
def test_a_refused_prompt_is_compacted_and_sent_again(way: str, opened: SessionStore) -> None:
    from agents import Agent, OpenAIProvider, RunConfig, Runner  # noqa: PLC0415 - not everywhere
    from openai import AsyncOpenAI  # noqa: PLC0415 - as above

    def hold_little(request: Request) -> Answer:
        size = len(str(request.body["input"]))
        if size > 12_000:
            return Refuses(Why.OVERFLOW, tokens=4_000, limit=3_000)
        return Says("It needs water.", usage=Tokens(input=size // 4))

    async def run(session: Any, config: Any, provider: Any) -> str:
        prompt = "What does this file need? " + "line after line of a long file " * 100
        is_own = way == "model of the agent"
        agent = Agent("a", model=session.retry(provider.get_model("gpt-5")) if is_own else None)
        given: dict[str, Any] = {"session": session, "run_config": config, "hooks": session.hooks}
        if way != "streamed":
            return str((await Runner.run(agent, prompt, **given)).final_output)
        streamed = Runner.run_streamed(agent, prompt, **given)
        async for _ in streamed.stream_events():
            pass
        return str(streamed.final_output)

    async def run_all(server: Loopback) -> list[str]:
        session = open_session(opened, policy="reserve-headroom")
        async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
            provider = OpenAIProvider(openai_client=client)
            config = session.run_config(RunConfig(tracing_disabled=True, model_provider=provider))
            return [await run(session, config, provider) for _ in range(6)]

    with loopback(hold_little) as server:
        assert asyncio.run(run_all(server)) == ["It needs water."] * 6
        assert any(len(str(request.body["input"])) > 12_000 for request in server.requests)
        for request in server.requests:
            check_prompts(request.body["input"])

    log = opened.session("a", create=False)
    assert log.view().summary is not None
    assert len([one for one in log.blocks() if one.item]) == 12
    assert len([call for call in audit(log).calls if call.report]) == 6


def test_without_the_filter_the_next_run_is_sent_the_view(opened: SessionStore) -> None:
    async def run() -> None:
        session = open_session(opened)
        for number in range(40):
            await session.add_items(make_openai_turn(number))
        items = await session.get_items()

        assert "conversation-summary" in items[0]["content"]
        assert items[-5:] == make_openai_turn(39)
        check_pairs(items)
        # Reasoning is sent with the call that it led to, or not at all.
        for at, item in enumerate(items):
            if item.get("type") == "reasoning":
                assert items[at + 1]["type"] == "function_call"
        assert await session.get_items(5) == make_openai_turn(39)
        assert await session.get_items(0) == []

    asyncio.run(run())


def test_half_pairs_are_stored_and_come_back(opened: SessionStore) -> None:
    async def run() -> None:
        session = open_session(opened)
        result = {"type": "function_call_output", "call_id": "lost", "output": "late"}
        call = {"type": "function_call", "call_id": "twice", "name": "read", "arguments": "{}"}
        items = [{"role": "user", "content": "Go."}, result, call, call, {"type": "new", "of": 1}]
        await session.add_items(items)

        assert await session.get_items(-1) == items
        assert await session.pop_item() == items[-1]
        assert await session.get_items() == items[:-1]

    asyncio.run(run())


def test_items_of_another_program_are_read(opened: SessionStore) -> None:
    log = opened.session("a")
    log.append(
        cutbank.Block.user("Look."),
        cutbank.ToolCall(tool_call_id="1", name="read", arguments='{"path": "a.py"}'),
    )
    log.append(cutbank.ToolResult(tool_call_id="1", content="empty"))

    assert asyncio.run(open_session(opened).get_items()) == [
        {"role": "user", "content": "Look."},
        {"type": "function_call", "call_id": "1", "name": "read", "arguments": '{"path": "a.py"}'},
        {"type": "function_call_output", "call_id": "1", "output": "empty"},
    ]


def test_a_history_that_a_handoff_changed_is_sent_as_it_is(opened: SessionStore) -> None:
    from agents import Agent  # noqa: PLC0415 - not everywhere
    from agents.run_config import CallModelData, ModelInputData  # noqa: PLC0415 - not everywhere

    async def run() -> None:
        session = open_session(opened)
        await session.get_items()
        await session.add_items(make_openai_turn(0))
        serve = session.run_config().call_model_input_filter
        for items in (make_openai_turn(0)[1:], make_openai_turn(0)):
            data = CallModelData(ModelInputData(items, None), Agent("one"), None)
            assert (await serve(data)).input == items
        await session.clear_session()
        data = CallModelData(
            ModelInputData([{"role": "user", "content": "x"}], None), Agent("a"), None
        )
        assert (await serve(data)).input == data.model_data.input

    asyncio.run(run())


def test_a_forced_compaction_needs_no_threshold(opened: SessionStore) -> None:
    async def run() -> None:
        policy = cutbank.ReserveHeadroom(reserve_tokens=500, keep_tokens=500)
        session = open_session(opened, policy=policy)
        await session.run_compaction({"force": True})
        for number in range(20):
            await session.add_items(make_openai_turn(number))
        await session.run_compaction({"response_id": "r"})
        assert session.log.view().boundary is None
        await session.run_compaction({"force": True})
        assert session.log.view().boundary is not None

    asyncio.run(run())


def test_a_session_that_was_deleted_meanwhile_refuses(opened: SessionStore) -> None:
    session = open_session(opened)
    opened.delete("a")

    with pytest.raises(cutbank.NotFoundError, match="was deleted"):
        asyncio.run(session.add_items(make_openai_turn(0)))


def test_a_closed_session_refuses(tmp_path: Path) -> None:
    session = open_session(tmp_path / "own.db")
    session.close()

    with pytest.raises(RuntimeError, match="'a' is closed"):
        asyncio.run(session.add_items([]))


@pytest.mark.parametrize("where", ["module", "page"])
def test_the_program_that_a_reader_sees_runs(where: str, tmp_path: Path, server: Loopback) -> None:
    server.script = lambda _: Says("Hello to you.")

    assert run_program(
        "-c",
        read_programs("openai_agents", "OpenAI Agents SDK")[where],
        server=server,
        cwd=tmp_path,
    ) == ["Hello to you."]
