"""Agents of LangChain run on a session of cutbank, with a model on the loopback."""

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from framework_programs import ROOT, read_programs, run_program
from loopback.answers import Answer, Call, Refuses, Request, Says, Stop, Tokens, Why
from loopback.providers import KEY
from loopback.server import Loopback, loopback

import cutbank
from cutbank import BlockKind, SessionStore, audit, verify

if find_spec("langchain") is None:
    pytest.skip(
        "langchain is not installed: scripts/test-frameworks has it", allow_module_level=True
    )

from langchain.agents import create_agent
from langchain_core.messages import RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from cutbank.frameworks.langchain import CutbankMiddleware
from cutbank.frameworks.langgraph import CutbankSaver

LIMIT = 8_000
THREAD: Any = {"configurable": {"thread_id": "t"}}
FILE = "line after line of a long file\n" * 100


@tool  # type: ignore[untyped-decorator,unused-ignore]
def read(path: str) -> str:
    """Read a file of the project."""
    return f"{path}:\n{FILE}"


def answer_with_a_call(request: Request) -> Answer:
    """Call the tool once for each question, and then answer."""
    items = request.body["input"]
    usage = Tokens(input=len(str(items)) // 4)
    if items[-1].get("type") == "function_call_output":
        return Says("It needs water.", usage=usage)
    return Says(calls=(Call("read", {"path": "a.py"}, f"call_{request.number}"),), usage=usage)


def make_agent(store: SessionStore, server: Loopback, *tools: Any) -> Any:
    model = ChatOpenAI(
        model="gpt-5-mini",
        base_url=f"{server.url}/v1",
        api_key=KEY,
        use_responses_api=True,
        max_retries=0,
    )
    return create_agent(
        model,
        [read, *tools],
        system_prompt="Be brief.",
        checkpointer=CutbankSaver(store),
        middleware=[CutbankMiddleware(store, policy="reserve-headroom", limit=LIMIT)],
    )


def ask(agent: Any, number: int, config: Any = THREAD) -> list[Any]:
    done = agent.invoke({"messages": [("user", f"What does file {number} need?")]}, config)
    messages: list[Any] = done["messages"]
    return messages


def list_texts(store: SessionStore, *kinds: BlockKind) -> list[str]:
    session = store.session("t", create=False)
    return [one.block.text for one in session.blocks(kinds=kinds)]


def test_a_long_thread_is_compacted_while_its_state_stays_whole(
    opened: SessionStore, server: Loopback
) -> None:
    agent = make_agent(opened, server)

    for number in range(20):
        messages = ask(agent, number)

    assert len(messages) == 80
    sizes = [len(request.body["input"]) for request in server.requests]
    assert max(sizes) < 60
    sent = str(server.requests[-1].body["input"])
    assert "conversation-summary" in sent
    assert len(sent) // 4 < LIMIT
    assert verify(opened).is_ok
    assert list_texts(opened, BlockKind.USER) == [
        f"What does file {number} need?" for number in range(20)
    ]


def test_the_log_has_each_message_once_and_each_call_with_what_it_was_sent(
    opened: SessionStore, server: Loopback
) -> None:
    agent = make_agent(opened, server)
    for number in range(3):
        messages = ask(agent, number)

    session = opened.session("t", create=False)
    assert list_texts(opened, BlockKind.TOOL_RESULT) == [f"a.py:\n{FILE}"] * 3
    assert list_texts(opened, BlockKind.ASSISTANT) == ["It needs water."] * 3
    items = [one.item for one in session.blocks() if one.item is not None]
    assert [item["data"]["id"] for item in items] == [message.id for message in messages]  # type: ignore[index,call-overload]
    calls = audit(session).calls
    assert len(calls) == len(server.requests) == 6
    sizes = [len(str(request.body["input"])) // 4 for request in server.requests]
    usages = [call.report.usage for call in calls if call.report]
    assert {call.report.model for call in calls if call.report} == {"gpt-5-mini"}
    assert [usage.input for usage in usages if usage] == sizes
    assert [hit.session for hit in opened.search('"needs water"')] == ["t"] * 3


def test_a_thread_that_goes_back_takes_back_what_came_after(
    opened: SessionStore, server: Loopback
) -> None:
    agent = make_agent(opened, server)
    for number in range(3):
        ask(agent, number)
    (second, *_) = [
        state
        for state in agent.get_state_history(THREAD)
        if not state.next and len(state.values["messages"]) == 8
    ]

    messages = ask(agent, 7, second.config)

    assert len(messages) == 12
    asked = [f"What does file {number} need?" for number in (0, 1, 7)]
    assert list_texts(opened, BlockKind.USER) == asked
    session = opened.session("t", create=False)
    kinds = [BlockKind.USER]
    assert len(list(session.blocks(kinds=kinds, retracted=True))) == 4


def test_a_message_that_the_state_removes_leaves_the_view(
    opened: SessionStore, server: Loopback
) -> None:
    agent = make_agent(opened, server)
    messages = ask(agent, 0)
    agent.update_state(THREAD, {"messages": [RemoveMessage(one.id) for one in messages[1:]]})

    ask(agent, 1)

    first, second = (f"What does file {number} need?" for number in (0, 1))
    assert list_texts(opened, BlockKind.USER) == [first, second]
    assert len(list_texts(opened, BlockKind.TOOL_RESULT)) == 1


def test_a_refused_prompt_is_compacted_and_sent_again(opened: SessionStore) -> None:
    def hold_little(request: Request) -> Answer:
        if len(str(request.body["input"])) > 12_000:
            return Refuses(Why.OVERFLOW, tokens=4_000, limit=3_000)
        return answer_with_a_call(request)

    with loopback(hold_little) as server:
        agent = make_agent(opened, server)
        for number in range(6):
            messages = ask(agent, number)

    assert len(messages) == 24
    assert messages[-1].text == "It needs water."
    assert opened.session("t", create=False).view().summary is not None


def test_an_agent_in_a_tool_has_a_session_of_its_own(
    opened: SessionStore, server: Loopback
) -> None:
    inner = make_agent(opened, server)

    @tool  # type: ignore[untyped-decorator,unused-ignore]
    def delegate(task: str) -> str:
        """Ask another agent."""
        done = inner.invoke({"messages": [("user", task)]})
        return str(done["messages"][-1].text)

    def delegate_once(request: Request) -> Answer:
        items = request.body["input"]
        if items[-1].get("type") == "function_call_output" or "inner task" in str(items[-1]):
            return answer_with_a_call(request)
        return Says(calls=(Call("delegate", {"task": "inner task"}, "call_outer"),))

    server.script = delegate_once
    ask(make_agent(opened, server, delegate), 0)

    parents = {session.key: session.info.parent for session in opened.sessions()}
    assert parents.pop("t") is None
    (parent,) = parents.values()
    assert parent is not None
    assert parent.key == "t"
    assert list_texts(opened, BlockKind.USER) == ["What does file 0 need?"]


def test_a_result_without_its_call_is_kept_as_a_text(
    opened: SessionStore, server: Loopback
) -> None:
    agent = make_agent(opened, server)
    agent.update_state(THREAD, {"messages": [ToolMessage("alone", tool_call_id="none")]})

    ask(agent, 0)

    assert list_texts(opened, BlockKind.DEVELOPER) == ["alone"]
    assert verify(opened).is_ok


def test_an_async_agent_is_served_the_same(opened: SessionStore, server: Loopback) -> None:
    agent = make_agent(opened, server)

    async def talk() -> None:
        for number in range(8):
            asked = {"messages": [("user", f"What does file {number} need?")]}
            await agent.ainvoke(asked, THREAD)

    asyncio.run(talk())

    assert len(list_texts(opened, BlockKind.USER)) == 8
    assert opened.session("t", create=False).view().summary is not None


def test_an_agent_without_a_thread_is_refused_in_one_line(
    opened: SessionStore, server: Loopback
) -> None:
    middleware = CutbankMiddleware(opened)
    model = ChatOpenAI(model="gpt-5-mini", base_url=f"{server.url}/v1", api_key=KEY)
    agent = create_agent(model, middleware=[middleware])

    with pytest.raises(ValueError, match="no session is named"):
        agent.invoke({"messages": [("user", "Hello")]})


@pytest.mark.parametrize("where", ["module", "page"])
def test_the_program_that_a_reader_sees_runs(where: str, tmp_path: Path, server: Loopback) -> None:
    server.script = lambda _: Says("Hello to you.")
    program = read_programs("langchain", "LangChain and LangGraph")[where]

    assert run_program("-c", program, server=server, cwd=tmp_path) == ["Hello to you."]


def test_the_example_goes_on_in_its_thread(tmp_path: Path, server: Loopback) -> None:
    def call_once(request: Request) -> Answer:
        messages = request.body["messages"]
        if messages[-1]["role"] == "tool":
            return Says("It needs water.", usage=Tokens(input=len(str(messages)) // 4))
        call = Call("read", {"path": "a.py"}, f"call_{request.number}")
        return Says(calls=(call,), stop=Stop.TOOL)

    server.script = call_once
    script = str(ROOT / "scripts" / "example_langchain.py")
    for _ in range(2):
        arguments = ("log.db", "--turns", "4", "--limit", str(LIMIT))
        printed = run_program(script, *arguments, server=server, cwd=tmp_path)
        assert printed == ["It needs water."] * 4

    with cutbank.open(tmp_path / "log.db") as store:
        session = store.session("example", create=False)
        assert len(list(session.blocks(kinds=[BlockKind.USER]))) == 8
        assert session.view().boundary is not None
