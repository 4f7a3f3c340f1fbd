"""Agents of Microsoft's Agent Framework are sent the view of their session, on the loopback."""

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from framework_adapters import make_agent_framework_turn
from framework_programs import ROOT, read_programs, run_program
from loopback.answers import Answer, Call, Refuses, Request, Says, Stop, Tokens, Why
from loopback.providers import KEY
from loopback.server import Loopback

import cutbank
from cutbank import BlockKind, SessionStore, audit, verify

if find_spec("agent_framework") is None:
    pytest.skip(
        "agent-framework is not installed: scripts/test-frameworks has it", allow_module_level=True
    )

from agent_framework import Agent, Content, Message, tool
from agent_framework.exceptions import ChatClientException
from agent_framework.openai import OpenAIChatCompletionClient

from cutbank.frameworks.agent_framework import CutbankHistoryProvider

LIMIT = 8_000
FILE = "line after line of a long file\n" * 100


@tool  # type: ignore[untyped-decorator,unused-ignore]
def read(path: str) -> str:
    """Read a file of the project."""
    return f"{path}:\n{FILE}"


def answer_with_a_call(request: Request) -> Answer:
    """Call the tool once for each question, and then answer."""
    messages = request.body["messages"]
    usage = Tokens(input=len(str(messages)) // 4)
    if messages[-1]["role"] == "tool":
        return Says("It needs water.", usage=usage)
    call = Call("read", {"path": "a.py"}, f"call_{request.number}")
    return Says(calls=(call,), stop=Stop.TOOL, usage=usage)


def ask(store: SessionStore, server: Loopback, turns: int, *, each_call: bool = True) -> list[str]:
    """Ask an agent in the session `s`, and return its answers."""

    async def run() -> list[str]:
        client = OpenAIChatCompletionClient(
            model="gpt-5-mini", api_key=KEY, base_url=f"{server.url}/v1"
        )
        history = CutbankHistoryProvider(store, policy="reserve-headroom", limit=LIMIT)
        agent = Agent(
            client,
            "Be brief.",
            tools=[read],
            context_providers=[history],
            middleware=[history.retry],
            require_per_service_call_history_persistence=each_call,
        )
        session = agent.create_session(session_id="s")
        async with client.client:
            return [
                str(await agent.run(f"What does file {number} need?", session=session))
                for number in range(turns)
            ]

    return asyncio.run(run())


def list_sent(server: Loopback) -> list[list[Any]]:
    """Return the messages of each request, without the instructions."""
    return [
        [one for one in request.body["messages"] if one["role"] != "system"]
        for request in server.requests
    ]


def check_pairs(messages: list[Any]) -> None:
    """Check what OpenAI demands: each result after its call, each call with its result."""
    calls = [call["id"] for one in messages for call in one.get("tool_calls") or []]
    assert calls == [one["tool_call_id"] for one in messages if one["role"] == "tool"]


@pytest.mark.parametrize("each_call", [True, False])
def test_the_session_has_the_instructions_and_tools_of_its_calls(
    opened: SessionStore, server: Loopback, each_call: bool
) -> None:
    ask(opened, server, 1, each_call=each_call)

    view = opened.session("s", create=False).view()
    assert view.system_prompt == server.requests[0].body["messages"][0]["content"] == "Be brief."
    assert view.tool_definitions == server.requests[0].body["tools"]


@pytest.mark.parametrize("each_call", [True, False])
def test_a_long_session_is_compacted_while_the_log_keeps_all(
    opened: SessionStore, server: Loopback, each_call: bool
) -> None:
    assert ask(opened, server, 20, each_call=each_call) == ["It needs water."] * 20

    sent = list_sent(server)
    assert len(sent) == 40
    for messages in sent:
        check_pairs(messages)
        assert len(str(messages)) // 4 < LIMIT
    assert "conversation-summary" in str(sent[-1][0]["content"])
    log = opened.session("s", create=False)
    assert len(list(log.blocks(kinds=[BlockKind.TOOL_RESULT]))) == 20
    assert len([one for one in log.blocks() if one.item]) == 80
    assert verify(opened).is_ok


def hold_little(request: Request) -> Answer:
    if len(str(request.body["messages"])) > 12_000:
        return Refuses(Why.OVERFLOW, tokens=4_000, limit=3_000)
    return answer_with_a_call(request)


def test_a_refused_prompt_is_compacted_and_sent_again(
    opened: SessionStore, server: Loopback
) -> None:
    server.script = hold_little
    assert ask(opened, server, 8) == ["It needs water."] * 8

    sent = list_sent(server)
    assert any(len(str(request.body["messages"])) > 12_000 for request in server.requests)
    for messages in sent:
        check_pairs(messages)
    log = opened.session("s", create=False)
    assert len([one for one in log.blocks() if one.item]) == 32
    assert log.view().summary is not None
    assert len([call for call in audit(log).calls if call.report]) == 16


def test_a_history_that_is_loaded_once_in_a_run_is_not_sent_again(
    opened: SessionStore, server: Loopback
) -> None:
    server.script = lambda _: Refuses(Why.OVERFLOW, tokens=4_000, limit=3_000)
    with pytest.raises(ChatClientException, match="too long"):
        ask(opened, server, 1, each_call=False)

    assert len(server.requests) == 1


def test_each_call_is_recorded_with_what_it_was_sent(
    opened: SessionStore, server: Loopback
) -> None:
    ask(opened, server, 12)

    log = opened.session("s", create=False)
    reports = [call.report for call in audit(log).calls if call.report]
    usages = [one.usage.input for one in reports if one.usage]
    assert usages == [len(str(request.body["messages"])) // 4 for request in server.requests]
    assert {report.renderer for report in reports} == {"agent-framework/1"}
    assert {report.model for report in reports} == {"gpt-5-mini"}
    for number, messages in enumerate(list_sent(server), 1):
        view = cutbank.audit_call(log, number).view
        assert view is not None
        shown: Any = view.render("agent-framework")["messages"]
        assert [one["role"] for one in shown] == [one["role"] for one in messages]


def test_every_part_of_a_message_comes_back(opened: SessionStore) -> None:
    pixel = bytes(range(256)) * 20
    failed = Content.from_function_result("1", result=["a", {"b": 1}], exception="no file")
    messages = [
        Message("system", ["Be brief."]),
        Message("user", ["Look.", Content.from_data(pixel, "image/png")]),
        Message("user", [Content.from_uri("https://example.com/a.pdf", media_type="a/pdf")]),
        Message("assistant", [Content.from_function_call("1", "read", arguments={"path": "a"})]),
        Message("tool", [failed]),
        Message("assistant", []),
        Message("tool", [Content.from_function_result("lost", result="late")]),
    ]

    async def run() -> list[Message]:
        history = CutbankHistoryProvider(opened)
        await history.save_messages("s", messages)
        await history.save_messages("s", [])
        return await history.get_messages("s")

    sent = [one.to_dict() for one in asyncio.run(run())]
    given = [one.to_dict() for one in messages]
    blocks = list(opened.session("s", create=False).blocks())
    assert [one.item for one in blocks if one.item] == given
    assert sent == given[:5] + given[6:]  # a message without content is a note
    kinds = [one.block.kind for one in blocks]
    assert kinds == [
        *("developer", "user", "image", "user", "tool_call", "tool_result", "note", "developer")
    ]
    assert blocks[2].stored_item is not None
    assert len(blocks[2].stored_item.item) < 500


def test_blocks_of_another_program_are_sent_as_messages(opened: SessionStore) -> None:
    log = opened.session("s")
    log.append(
        cutbank.Block.developer("Mind the rules."),
        cutbank.Block.user("Look."),
        cutbank.ToolCall(tool_call_id="1", name="read", arguments='{"path": "a.py"}'),
    )
    log.append(
        cutbank.ToolResult(tool_call_id="1", content="empty"), cutbank.Block.assistant("Ok.")
    )

    found = asyncio.run(CutbankHistoryProvider(opened).get_messages("s"))

    assert [one.role for one in found] == ["system", "user", "assistant", "tool", "assistant"]
    assert [one.text for one in found] == ["Mind the rules.", "Look.", "", "", "Ok."]
    call, result = found[2].contents[0], found[3].contents[0]
    assert (call.call_id, call.arguments) == ("1", '{"path": "a.py"}')
    assert (result.call_id, result.result) == ("1", "empty")


def test_a_result_is_sent_shortened_where_the_view_shortens_it(opened: SessionStore) -> None:
    async def run() -> list[Message]:
        history = CutbankHistoryProvider(opened, limit=1_000_000)
        for number in range(40):
            turn = [Message.from_dict(one) for one in make_agent_framework_turn(number)]
            await history.save_messages("s", turn)
        log = history.log("s")
        (result,) = log.blocks(last=1, kinds=[BlockKind.TOOL_RESULT])
        log.hide(result.position, replacement="[cut]")
        log.compact("reserve-headroom", limit=LIMIT)
        return await history.get_messages("s")

    found = asyncio.run(run())

    assert len(found) < 100
    assert "conversation-summary" in found[0].text
    results = [part.result for one in found for part in one.contents if one.role == "tool"]
    assert results[-1] == "[cut]"


def test_an_agent_without_a_session_is_refused_in_one_line(opened: SessionStore) -> None:
    with pytest.raises(ValueError, match="no session is named"):
        asyncio.run(CutbankHistoryProvider(opened).get_messages(None))


@pytest.mark.parametrize("where", ["module", "page"])
def test_the_program_that_a_reader_sees_runs(where: str, tmp_path: Path, server: Loopback) -> None:
    server.script = lambda _: Says("Hello to you.")
    program = read_programs("agent_framework", "Microsoft Agent Framework")[where]

    assert run_program("-c", program, server=server, cwd=tmp_path) == ["Hello to you."]


def test_the_example_goes_on_in_its_session(tmp_path: Path, server: Loopback) -> None:
    script = str(ROOT / "scripts" / "example_agent_framework.py")
    for _ in range(2):
        arguments = ("log.db", "--turns", "4", "--limit", str(LIMIT))
        printed = run_program(script, *arguments, server=server, cwd=tmp_path)
        assert printed == ["It needs water."] * 4

    with cutbank.open(tmp_path / "log.db") as store:
        log = store.session("example", create=False)
        assert len(list(log.blocks(kinds=[BlockKind.USER]))) == 8
        assert log.view().boundary is not None
