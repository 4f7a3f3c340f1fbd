"""Threads of LangGraph are sessions, and their checkpoints records."""

import asyncio
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from databases import each_database
from framework_programs import read_docstring, run_program
from loopback.answers import Says
from loopback.server import loopback

import cutbank
from cutbank import SessionStore, verify

if find_spec("langgraph") is None:
    pytest.skip(
        "langgraph is not installed: scripts/test-frameworks has it", allow_module_level=True
    )

from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from cutbank.frameworks.langgraph import CutbankSaver

THREAD: Any = {"configurable": {"thread_id": "t"}}
pytestmark = each_database


def make_graph(store: SessionStore, answer: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    return graph.compile(checkpointer=CutbankSaver(store))


def say(graph: Any, text: str) -> list[str]:
    done = graph.invoke({"messages": [("user", text)]}, THREAD)
    return [message.text for message in done["messages"]]


def answer_politely(state: MessagesState) -> Any:
    return {"messages": [("ai", f"answer {len(state['messages'])}")]}


def test_all_capabilities_conform(opened: SessionStore) -> None:
    @checkpointer_test(name="CutbankSaver")  # type: ignore[untyped-decorator,unused-ignore]
    async def make_saver() -> AsyncIterator[CutbankSaver]:
        yield CutbankSaver(opened, namespace="conformance")

    report = asyncio.run(validate(make_saver))

    assert report.conformance_level() == "FULL"
    assert verify(opened).is_ok


def test_a_thread_goes_on_in_another_process_and_from_an_earlier_checkpoint(
    opened: SessionStore, database: str
) -> None:
    say(make_graph(opened, answer_politely), "one")
    with cutbank.open(database) as other:
        graph = make_graph(other, answer_politely)
        assert say(graph, "two") == ["one", "answer 1", "two", "answer 3"]

        (first, *_) = [
            state
            for state in graph.get_state_history(THREAD)
            if not state.next and len(state.values["messages"]) == 2
        ]
        again = graph.invoke({"messages": [("user", "other")]}, first.config)

    assert [message.text for message in again["messages"]] == [
        "one",
        "answer 1",
        "other",
        "answer 3",
    ]


def test_an_interrupted_graph_is_resumed(opened: SessionStore) -> None:
    def ask(state: MessagesState) -> Any:
        return {"messages": [("ai", f"you chose {interrupt('which?')}")]}

    graph = make_graph(opened, ask)
    graph.invoke({"messages": [("user", "begin")]}, THREAD)

    resumed = graph.invoke(Command(resume="blue"), THREAD)

    assert resumed["messages"][-1].text == "you chose blue"


def test_checkpoints_are_no_part_of_the_conversation(opened: SessionStore) -> None:
    say(make_graph(opened, answer_politely), "heron")

    session = opened.session("t", create=False)

    assert list(session.blocks()) == []
    assert session.view().tokens == 0
    assert list(opened.search("heron")) == []


def test_a_pruned_checkpoint_leaves_the_lists_and_is_found_by_its_id(opened: SessionStore) -> None:
    graph, saver = make_graph(opened, answer_politely), CutbankSaver(opened)
    say(graph, "one")
    before = list(saver.list(THREAD))

    saver.prune(["t"])

    assert [one.config for one in saver.list(THREAD)] == [before[0].config]
    assert saver.get_tuple(before[1].config) == before[1]
    with pytest.raises(ValueError, match="no strategy 'oldest'"):
        saver.prune(["t"], strategy="oldest")


def test_a_runs_pruned_checkpoints_are_deleted_with_it(opened: SessionStore) -> None:
    graph, saver = make_graph(opened, answer_politely), CutbankSaver(opened)
    for run in ("first", "second"):
        graph.invoke({"messages": [("user", run)]}, THREAD | {"metadata": {"run_id": run}})
    before = list(saver.list(THREAD))
    saver.prune(["t"])

    saver.delete_for_runs(["first"])

    kept = [one for one in before if saver.get_tuple(one.config)]
    assert {one.metadata["run_id"] for one in before} == {"first", "second"}
    assert {one.metadata["run_id"] for one in kept} == {"second"}


def test_what_a_task_wrote_is_stored_once(opened: SessionStore) -> None:
    say(make_graph(opened, answer_politely), "one")
    saver = CutbankSaver(opened)
    (newest, *_) = saver.list(THREAD)
    for value in ("blue", "blue", "red"):
        saver.put_writes(newest.config, [("color", value), ("__interrupt__", "which?")], "task")

    again = saver.get_tuple(newest.config)
    assert again is not None
    assert again.pending_writes == [
        ("task", "__interrupt__", "which?"),
        ("task", "color", "blue"),
    ]
    records = opened.session("t", create=False).records
    (name,) = [one.name for one in records.newest("write") if one.name.endswith("task")]
    assert len(list(records.history(name))) == 1


def test_a_deleted_thread_is_new_and_an_erased_one_is_in_no_file(
    opened: SessionStore, tmp_path: Path
) -> None:
    graph = make_graph(opened, answer_politely)
    say(graph, "heron in the reeds")
    CutbankSaver(opened).delete_thread("t")
    assert say(graph, "new") == ["new", "answer 1"]

    opened.erase("t")
    opened.close()

    contents = [file.read_bytes() for file in tmp_path.glob("test.db*")]
    assert not any(b"heron in the reeds" in content for content in contents)


def test_the_program_that_a_reader_sees_runs(opened: SessionStore, tmp_path: Path) -> None:
    del opened  # it opens its own
    with loopback(lambda _: Says("")) as server:
        program = read_docstring("langgraph")
        (printed,) = run_program("-c", program, server=server, cwd=tmp_path)

    assert "Hello to you" in printed
