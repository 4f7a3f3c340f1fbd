"""Agents of Pydantic AI run on sessions of cutbank, with a model on the loopback."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from databases import each_database
from framework_adapters import find_adapter
from framework_programs import ROOT, read_programs, run_program
from loopback.answers import Answer, Call, Refuses, Request, Says, Stop, Tokens, Why
from loopback.providers import KEY
from loopback.server import Loopback, loopback

import cutbank
from cutbank import BlockKind, SessionStore, ToolResult, audit, verify

LIMIT = 8_000


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    find_adapter("pydantic_ai")


def answer_with_a_call(request: Request) -> Answer:
    messages = request.body["messages"]
    usage = Tokens(input=len(str(messages)) // 4)
    if messages[-1]["role"] == "tool":
        return Says("It needs water.", usage=usage)
    call = Call("read", {"path": "a.py"}, f"call_{request.number}")
    return Says(calls=(call,), stop=Stop.TOOL, usage=usage)


def make_agent(
    store: SessionStore, server: Loopback, *tools: Callable[..., Any], **fields: Any
) -> Any:
    from pydantic_ai import Agent  # noqa: PLC0415 - not everywhere
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - as above
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - as above

    def read(path: str) -> str:
        return f"{path}:\n" + "line after line of a long file\n" * 200

    provider = OpenAIProvider(base_url=f"{server.url}/v1", api_key=KEY)
    return Agent(
        OpenAIChatModel("gpt-5-mini", provider=provider),
        tools=[read, *tools],
        capabilities=[make_history(store)],
        **fields,
    )


def make_history(store: SessionStore) -> Any:
    from cutbank.frameworks.pydantic_ai import CutbankHistory  # noqa: PLC0415 - not everywhere

    return CutbankHistory(store, policy="reserve-headroom", limit=LIMIT)


def dump(messages: Any) -> Any:
    from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415 - not everywhere

    return ModelMessagesTypeAdapter.dump_python(messages, mode="json")


def run(agent: Any, prompt: str, **fields: Any) -> Any:
    """Run an agent once, and close the connections of its model."""

    async def run_once() -> Any:
        async with agent:
            return await agent.run(prompt, **fields)

    return asyncio.run(run_once())


def ask(agent: Any, store: SessionStore, number: int) -> Any:
    conversation = make_history(store).load("t")
    return run(agent, f"What does file {number} need?", conversation=conversation)


def list_texts(store: SessionStore, kind: BlockKind, name: str = "t") -> list[str]:
    session = store.session(name, create=False)
    return [one.block.text for one in session.blocks(kinds=[kind])]


@each_database
def test_an_agent_goes_on_while_its_history_is_compacted(database: str, server: Loopback) -> None:
    with cutbank.open(database) as store:
        agent = make_agent(store, server, system_prompt="Be brief.")
        for number in range(8):
            done = ask(agent, store, number)

        assert dump(make_history(store).load("t").messages) == dump(done.all_messages())
        assert len(done.all_messages()) == 32
        sent = [request.body["messages"] for request in server.requests]
        assert any(len(sent[at]) < len(sent[at - 1]) for at in range(1, len(sent)))
        for messages in sent:
            calls = [call["id"] for one in messages for call in one.get("tool_calls") or []]
            results = [one["tool_call_id"] for one in messages if one["role"] == "tool"]
            assert sorted(calls) == sorted(results)
            assert [one["content"] for one in messages if one["role"] == "system"] == ["Be brief."]
        session = store.session("t", create=False)
        assert session.view().summary is not None
        assert len(list(session.blocks(retracted=True))) == len(list(session.blocks())) == 32
        reports = [call.report for call in audit(session).calls if call.report]
        assert [report.renderer for report in reports] == ["pydantic-ai/1"] * len(sent)
        assert {report.model for report in reports} == {"gpt-5-mini"}
        usages = [report.usage for report in reports if report.usage]
        assert [usage.input for usage in usages] == [len(str(one)) // 4 for one in sent]
        assert len(session.recall(search="a.py:")) >= 8
        assert [hit.session for hit in store.search('"needs water"')] == ["t"] * 8
        store.erase(session)
        assert make_history(store).load("t").messages == []
        assert verify(store).is_ok


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_refused_prompt_is_compacted_and_sent_again(
    opened: SessionStore, *, is_streamed: bool
) -> None:
    def hold_little(request: Request) -> Answer:
        size = len(str(request.body["messages"]))
        if size > 12_000:
            return Refuses(Why.OVERFLOW, tokens=4_000, limit=3_000)
        return Says("It needs water.", usage=Tokens(input=size // 4))

    async def ask_at_length(agent: Any) -> Any:
        conversation = make_history(opened).load("t")
        prompt = "What does this file need? " + "line after line of a long file " * 100
        async with agent:
            if not is_streamed:
                return await agent.run(prompt, conversation=conversation)
            async with agent.run_stream(prompt, conversation=conversation) as answer:
                assert await answer.get_output() == "It needs water."
                return answer

    with loopback(hold_little) as server:
        agent = make_agent(opened, server)
        for _ in range(6):
            done = asyncio.run(ask_at_length(agent))

    assert any(len(str(request.body["messages"])) > 12_000 for request in server.requests)
    assert len(done.all_messages()) == 12
    assert dump(make_history(opened).load("t").messages) == dump(done.all_messages())
    session = opened.session("t", create=False)
    assert session.view().summary is not None
    assert len([call for call in audit(session).calls if call.report]) == 6


def test_what_a_failed_run_said_is_stored_and_the_next_one_goes_on(
    opened: SessionStore, server: Loopback
) -> None:
    def fail() -> str:
        raise RuntimeError("no such file")

    server.script = lambda _: Says(calls=(Call("fail", {}, "call_a"),), stop=Stop.TOOL)
    agent = make_agent(opened, server, fail)
    with pytest.raises(RuntimeError, match="no such file"):
        ask(agent, opened, 0)

    assert list_texts(opened, BlockKind.USER) == ["What does file 0 need?"]
    assert len(list_texts(opened, BlockKind.TOOL_CALL)) == 1
    server.script = lambda _: Says("It needs water.")
    assert ask(agent, opened, 1).output == "It needs water."
    assert list_texts(opened, BlockKind.ASSISTANT) == ["It needs water."]
    assert verify(opened).is_ok


def test_a_run_that_begins_from_an_earlier_history_takes_back_what_came_after(
    opened: SessionStore, server: Loopback
) -> None:
    agent = make_agent(opened, server)
    done = [ask(agent, opened, number) for number in range(3)]

    again = run(agent, "What does file 7 need?", conversation=done[0].conversation)

    asked = [f"What does file {number} need?" for number in (0, 7)]
    assert list_texts(opened, BlockKind.USER) == asked
    assert len(again.all_messages()) == 8
    session = opened.session("t", create=False)
    assert len(list(session.blocks(kinds=[BlockKind.USER], retracted=True))) == 4


def test_an_agent_in_a_tool_has_a_session_of_its_own(
    opened: SessionStore, server: Loopback
) -> None:
    inner = make_agent(opened, server)

    async def delegate(task: str) -> str:
        async with inner:
            return str((await inner.run(task)).output)

    def delegate_once(request: Request) -> Answer:
        messages = request.body["messages"]
        if messages[-1]["role"] == "tool" or "inner task" in str(messages[-1]):
            return answer_with_a_call(request)
        return Says(calls=(Call("delegate", {"task": "inner task"}, "call_outer"),), stop=Stop.TOOL)

    server.script = delegate_once
    ask(make_agent(opened, server, delegate), opened, 0)

    parents = {session.key: session.info.parent for session in opened.sessions()}
    assert parents.pop("t") is None
    ((name, parent),) = parents.items()
    assert parent is not None
    assert parent.key == "t"
    assert list_texts(opened, BlockKind.USER, name) == ["inner task"]
    assert list_texts(opened, BlockKind.USER) == ["What does file 0 need?"]


def test_all_kinds_of_parts_come_back(opened: SessionStore, server: Loopback) -> None:
    from pydantic_ai import messages as parts  # noqa: PLC0415 - not everywhere

    history: list[Any] = [
        parts.ModelRequest([parts.SystemPromptPart("Be brief.")]),
        parts.ModelRequest(
            [
                parts.UserPromptPart(
                    [
                        "Look at these",
                        parts.BinaryContent(
                            b"\x89PNG\r\n\x1a\n" + bytes(range(256)), media_type="image/png"
                        ),
                        parts.ImageUrl("https://example.com/a.png"),
                    ]
                )
            ]
        ),
        parts.ModelResponse(
            [
                parts.ThinkingPart("Hm.", id="rs_1", signature="x" * 60, provider_name="openai"),
                parts.TextPart("I look."),
                parts.ToolCallPart("read", {"path": "a.py"}, "call_a"),
                parts.ToolCallPart("read", '{"path": ', "call_b"),
                parts.NativeToolCallPart("web_search", {"query": "water"}, "call_c"),
                parts.NativeToolReturnPart("web_search", {"found": 3}, "call_c"),
            ]
        ),
        parts.ModelRequest(
            [
                parts.ToolReturnPart("read", {"text": "long " * 20}, "call_a"),
                parts.ToolReturnPart("read", "no JSON", "call_b", outcome="retried"),
            ]
        ),
        parts.ModelResponse([]),
    ]
    server.script = lambda _: Says("Water.")
    agent = make_agent(opened, server)
    done = run(agent, "And now?", message_history=history, conversation_id="t")

    assert dump(make_history(opened).load("t").messages) == dump(done.all_messages())
    blocks = [one.block for one in opened.session("t", create=False).blocks()]
    assert [block.is_error for block in blocks if isinstance(block, ToolResult)] == [False, True]
    assert [block.text for block in blocks if block.kind is BlockKind.THINKING] == ["Hm."]
    assert [block.kind for block in blocks].count(BlockKind.TOOL_CALL) == 2
    assert [block.kind for block in blocks].count(BlockKind.IMAGE) == 1


def test_blocks_of_another_program_are_sent(opened: SessionStore, server: Loopback) -> None:
    session = opened.session("t")
    session.append(
        cutbank.Block.user("Look."),
        cutbank.ToolCall(tool_call_id="1", name="read", arguments='{"path": "a.py"}'),
    )
    session.append(cutbank.ToolResult(tool_call_id="1", content="empty"))
    server.script = lambda _: Says("Water.")

    run(make_agent(opened, server), "And now?", conversation_id="t")

    (request,) = server.requests
    roles = [one["role"] for one in request.body["messages"]]
    assert roles == ["user", "assistant", "tool", "user"]


@pytest.mark.slow
@pytest.mark.parametrize("where", ["module", "page"])
def test_the_program_that_a_reader_sees_runs(where: str, tmp_path: Path, server: Loopback) -> None:
    server.script = lambda _: Says("Hello to you.")
    program = read_programs("pydantic_ai", "Pydantic AI")[where]

    assert run_program("-c", program, server=server, cwd=tmp_path) == ["Hello to you."]


@pytest.mark.slow
def test_the_example_goes_on_in_its_conversation(tmp_path: Path, server: Loopback) -> None:
    script = str(ROOT / "scripts" / "example_pydantic_ai.py")
    for _ in range(2):
        arguments = ("log.db", "--turns", "4", "--limit", str(LIMIT))
        printed = run_program(script, *arguments, server=server, cwd=tmp_path)
        assert printed == ["It needs water."] * 4

    with cutbank.open(tmp_path / "log.db") as store:
        assert len(list_texts(store, BlockKind.USER, "example")) == 8
        assert store.session("example", create=False).view().boundary is not None
