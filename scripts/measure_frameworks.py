"""Measures the adapters beside the frameworks' own stores on SQLite, taking turns in one run.

    .venv-frameworks/bin/python scripts/measure_frameworks.py [--rounds 300]

`scripts/test-frameworks` makes that environment. Prints the median milliseconds of each operation,
wall time and CPU time, and the ratio of ours to theirs.
"""

import argparse
import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, TypedDict

from agents import SQLiteSession
from google.adk.events import Event
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

import cutbank
from cutbank.frameworks.claude_agent import CutbankSessionStore
from cutbank.frameworks.google_adk import CutbankSessionService
from cutbank.frameworks.langgraph import CutbankSaver
from cutbank.frameworks.openai_agents import CutbankSession

TEXT = "the quick brown lynx reads line after line of a long file " * 20
Operation = Callable[[int], Awaitable[object]]


class State(TypedDict):
    """The state of a graph that appends a message in each of its steps."""

    messages: list[str]


async def measure(name: str, ours: Operation, theirs: Operation, rounds: int) -> None:
    """Print the medians of two operations that take turns."""
    wall: dict[Operation, list[float]] = {ours: [], theirs: []}
    cpu: dict[Operation, list[float]] = {ours: [], theirs: []}
    for number in range(rounds):
        for work in (ours, theirs) if number % 2 else (theirs, ours):
            begun, used = time.perf_counter(), time.process_time()
            await work(number)
            wall[work].append(time.perf_counter() - begun)
            cpu[work].append(time.process_time() - used)
    found = [median(times[work]) * 1000 for times in (wall, cpu) for work in (ours, theirs)]
    print(
        f"{name:34} wall {found[0]:7.2f} {found[1]:7.2f} {found[0] / found[1]:6.2f}x"
        f"   CPU {found[2]:7.2f} {found[3]:7.2f} {found[2] / found[3]:6.2f}x",
        flush=True,
    )


async def measure_openai(folder: str, rounds: int) -> None:
    def make_items(number: int) -> list[Any]:
        call = {"call_id": f"call-{number}", "name": "read", "arguments": '{"path": "a.py"}'}
        said = {"type": "output_text", "text": TEXT, "annotations": []}
        return [
            {"role": "user", "content": TEXT},
            {"type": "function_call", "id": f"fc_{number}", "status": "completed", **call},
            {"type": "function_call_output", "call_id": call["call_id"], "output": TEXT},
            {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [said]},
        ]

    ours = CutbankSession("a", f"{folder}/openai.db", limit=10**9)
    theirs = SQLiteSession("a", f"{folder}/openai-own.db")

    def make_operations(session: Any) -> list[Operation]:
        return [
            lambda number: session.add_items(make_items(number)),
            lambda _: session.get_items(),
            lambda _: session.get_items(10),
            lambda _: session.pop_item(),
        ]

    names = ("add_items(4)", "get_items()", "get_items(10)", "pop_item()")
    pairs = zip(names, make_operations(ours), make_operations(theirs), strict=True)
    for name, our, their in pairs:
        await measure(f"OpenAI {name}", our, their, rounds)
    ours.close()
    theirs.close()


async def measure_langgraph(folder: str, rounds: int) -> None:
    graph: Any = StateGraph(State)
    graph.add_node("answer", lambda state: {"messages": [*state["messages"], TEXT][-10:]})
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)

    def make_operations(saver: Any) -> list[Operation]:
        compiled = graph.compile(checkpointer=saver)
        thread = {"configurable": {"thread_id": "a"}}

        async def invoke(_: int) -> None:
            compiled.invoke({"messages": [TEXT]}, thread)

        async def get_state(_: int) -> None:
            compiled.get_state(thread)

        async def list_ten(_: int) -> None:
            list(saver.list(thread, limit=10))

        return [invoke, get_state, list_ten]

    with (
        cutbank.open(f"{folder}/langgraph.db") as store,
        SqliteSaver.from_conn_string(f"{folder}/langgraph-own.db") as saver,
    ):
        names = ("invoke", "get_state", "list(limit=10)")
        pairs = zip(
            names, make_operations(CutbankSaver(store)), make_operations(saver), strict=True
        )
        for name, ours, theirs in pairs:
            await measure(f"LangGraph {name}", ours, theirs, rounds)


async def measure_adk(folder: str, rounds: int) -> None:
    names: dict[str, Any] = {"app_name": "app", "user_id": "user", "session_id": "a"}

    def make_operations(service: Any, session: Any) -> list[Operation]:
        async def append(number: int) -> None:
            content = types.Content(role="user", parts=[types.Part(text=TEXT)])
            await service.append_event(session, Event(author="user", content=content))
            del number

        async def get(_: int) -> None:
            await service.get_session(**names)

        return [append, get]

    async with contextlib.AsyncExitStack() as stack:
        ours = await stack.enter_async_context(CutbankSessionService(f"{folder}/adk.db"))
        theirs = SqliteSessionService(f"{folder}/adk-own.db")
        operations = [
            make_operations(one, await one.create_session(**names)) for one in (ours, theirs)
        ]
        for name, our, their in zip(("append_event", "get_session"), *operations, strict=True):
            await measure(f"ADK {name}", our, their, rounds)


async def measure_claude(folder: str, rounds: int) -> None:
    """Compare appends to a session with few entries and to one with many."""
    store = CutbankSessionStore(f"{folder}/claude.db")

    def make_entries(key: str, number: int) -> list[dict[str, Any]]:
        message = {"role": "user", "content": TEXT}
        return [
            {"type": "user", "uuid": f"{key}-{number}-{at}", "message": message} for at in range(5)
        ]

    async def append(key: str, number: int) -> None:
        name = {"project_key": "p", "session_id": key}
        await store.append(name, make_entries(key, number))

    for number in range(600):
        await append("long", -number - 1)
    await measure(
        "Claude append(5), 3,000 entries / 0",
        lambda number: append("long", number),
        lambda number: append(f"short {number // 10}", number),
        rounds,
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--only", help="openai, langgraph, adk or claude")
    asked = parser.parse_args()
    print(f"{'milliseconds':34} {'ours':>12} {'theirs':>7}")
    for part in (measure_openai, measure_langgraph, measure_adk, measure_claude):
        if asked.only in (None, part.__name__.removeprefix("measure_")):
            with TemporaryDirectory(prefix="cutbank-frameworks-") as folder:
                await part(folder, asked.rounds)


if __name__ == "__main__":
    asyncio.run(main())
