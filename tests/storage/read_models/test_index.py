"""What the tables say: sessions, their digests, the meter of their calls, the ledger."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any, cast

import pytest
from opened_stores import store_of
from read_model_rows import table

import cutbank
from cutbank import Block, CompactionOptions, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.storage.read_models.read_models import ReadModels
from cutbank.domain.blocks import Kind
from cutbank.domain.errors import NothingToCompactError
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.session_events import Parent, Usage

from .conftest import talk

POLICY = ReserveHeadroom(reserve_tokens=500, keep_tokens=600)


def rows(store: SessionStore, name: str, where: str = "1") -> list[dict[str, object]]:
    store.read_models.catch_up()
    return table(store.read_models, name, where)


def digest(store: SessionStore) -> list[tuple[object, ...]]:
    found = rows(store, "digest_entries")
    return [tuple(row[name] for name in ("position", "kind", "what", "outcome")) for row in found]


def test_a_session_is_due_once_it_is_idle_and_waits_for_nothing(store: SessionStore) -> None:
    store.read_models.change_settings(least_share=0)
    session = store.session("s")
    session.append(Block.user("hello"))
    idle = rows(store, "sessions")[0]

    session.append(ToolCall(tool_call_id="c1", name="ask", arguments="{}"))
    waiting = rows(store, "sessions")[0]
    session.append(ToolResult(tool_call_id="c1", content="done"))
    again = rows(store, "sessions")[0]
    session.close()
    closed = rows(store, "sessions")[0]

    for row in (idle, again):
        due, last = (datetime.fromisoformat(str(row[x])) for x in ("due_at", "last_activity"))
        assert due - last == timedelta(seconds=300)
    assert waiting["due_at"] is None
    assert waiting["open_calls"] == 1
    assert closed["due_at"] is None
    assert closed["closed"] == 1


def test_what_a_provider_counted_says_how_full_a_session_is(store: SessionStore) -> None:
    limit = 1_000
    store.read_models.change_settings(context_limit=limit, least_share=0.5)
    session = store.session("s")
    session.append(Block.user("words " * 100))
    (unreported,) = rows(store, "sessions")
    session.record_call(session.view(), call_id="c", usage=Usage(input=600, cache_read=100))
    session.append(Block.assistant("more words " * 10))
    (reported,) = rows(store, "sessions")
    in_use = cutbank.measure_context(session).in_use.tokens
    session.record_call(session.view(), call_id="d", model="m")  # of which nothing is known
    (still,) = rows(store, "sessions")
    said = session.append(Block.user("no, not that"))
    session.retract(said.first)
    (taken_back,) = rows(store, "sessions")

    assert (unreported["in_use"], unreported["due_at"]) == (unreported["view_tokens"], None)
    assert reported["reported"] == 700 < in_use
    assert reported["in_use"] == still["in_use"] == taken_back["in_use"] == in_use
    assert reported["utilisation"] == round(in_use / limit, 4)
    assert reported["due_at"] is not None


def test_after_a_boundary_in_use_is_what_the_meter_estimates(store: SessionStore) -> None:
    session = store.session("s")
    for number in range(40):
        session.append(Block.user(f"{number}: " + "words " * 300))
    session.record_call(session.view(), call_id="c", usage=Usage(input=90_000))
    session.compact(limit=20_000)
    (row,) = rows(store, "sessions")

    assert (row["in_use"], row["reported"]) == (
        cutbank.measure_context(session).in_use.tokens,
        None,
    )
    assert (
        row["view_tokens"]
        == session.view().tokens
        < cutbank.measure_context(session).in_use.tokens
        < 90_000
    )


def test_due_sessions_are_found_by_an_index(store: SessionStore) -> None:
    store.read_models.catch_up()

    plan = store.read_models.file.fetch_rows(
        "EXPLAIN QUERY PLAN SELECT * FROM sessions WHERE due_at <= '2026' ORDER BY due_at"
    )

    assert "idx_sessions_due_at" in plan[0][-1]
    assert len(plan) == 1


def test_a_parent_is_named_whichever_was_there_first(store: SessionStore) -> None:
    worked_for = Parent(namespace="default", key="lead", tool_call_id="c7")
    store.session("before", parent=worked_for, title="About the river")
    rows(store, "sessions")
    store.session("with", parent=worked_for)
    store.session("lead")
    store.session("after", parent=worked_for)

    found = {row["key"]: row for row in rows(store, "sessions")}

    ids = {found[key]["parent_id"] for key in ("before", "with", "after")}
    assert ids == {found["lead"]["id"]}
    assert found["before"]["parent_call"] == "c7"
    assert found["lead"]["parent_id"] is None
    assert (found["before"]["name"], found["before"]["title"]) == ("About the river",) * 2
    assert (found["after"]["name"], found["after"]["title"]) == ("after", None)


def test_the_digest_names_files_commands_and_artifacts(session: StoredSession) -> None:
    session.append(
        ToolCall(tool_call_id="c1", name="Read", arguments={"file_path": "a.py"}),
        ToolCall(tool_call_id="c2", name="write_file", arguments={"path": "b.py"}),
        ToolCall(tool_call_id="c3", name="bash", arguments={"command": "make test"}),
        ToolCall(tool_call_id="c4", name="Read", arguments={"file_path": "missing.py"}),
        Block(kind=Kind.ARTIFACT, name="plan.md", text="1. look"),
        ToolResult(tool_call_id="c1", content="print(1)"),
        ToolResult(tool_call_id="c4", content="no such file", is_error=True),
    )
    session.cancel_tool_call("c3", "nobody waits for it")

    assert digest(store_of(session)) == [
        (2, "read", "a.py", "ok"),
        (3, "modified", "b.py", None),
        (4, "command", "make test", "abandoned"),
        (5, "read", "missing.py", "error"),
        (6, "artifact", "plan.md", None),
    ]
    touched = session.log.context.read_models.file.fetch_rows(
        "SELECT path FROM files_touched ORDER BY 1"
    )
    assert touched == [("a.py",), ("b.py",)]


def test_an_answer_that_is_taken_back_leaves_its_call_open_in_the_digest(
    session: StoredSession,
) -> None:
    session.append(ToolCall(tool_call_id="c1", name="Read", arguments={"file_path": "a.py"}))
    answered = session.append(ToolResult(tool_call_id="c1", content="no", is_error=True))
    rows(store_of(session), "digest_entries")

    session.retract(answered.last)
    reopened = digest(store_of(session))
    session.retract(2)

    assert reopened == [(2, "read", "a.py", None)]
    assert rows(store_of(session), "digest_entries")[0]["retracted"] == 1


def test_a_fork_s_answer_says_nothing_of_its_parent_s_call(session: StoredSession) -> None:
    session.append(ToolCall(tool_call_id="c1", name="Read", arguments={"file_path": "a.py"}))
    fork = session.fork("fork")
    fork.append(ToolResult(tool_call_id="c1", content="no", is_error=True))

    assert digest(store_of(session)) == [(2, "read", "a.py", None)]


def test_the_meter_says_what_each_call_saw_and_cost(session: StoredSession) -> None:
    session.append(Block.user("word " * 400_000))
    view = session.view()
    session.append(Block.assistant("said before the call was recorded"))
    session.record_call(
        view,
        call_id="m1",
        model="claude",
        usage=Usage(input=90_000, cache_read=80_000, output=12),
        cost_usd=0.25,
        latency_s=1.5,
    )
    session.record_call(view, call_id="m1", model="claude", cost_usd=0.25)

    first, last = rows(store_of(session), "model_calls")

    assert (first["view_tokens"], first["prompt_tokens"]) == (view.tokens, 170_000)
    assert (first["cached_tokens"], first["output_tokens"]) == (80_000, 12)
    assert (first["utilisation"], first["level"]) == (0.85, "high")
    assert (first["cost_usd"], first["latency_s"]) == (0.25, 1.5)
    assert first["fingerprint"] == view.fingerprint
    assert (first["repeated"], last["repeated"]) == (1, 0)
    assert last["level"] == "over"
    assert session.log.context.read_models.file.fetch_rows("SELECT calls, cost_usd FROM costs") == [
        (1, 0.25)
    ]


MEANWHILE: dict[str, Callable[[StoredSession], object]] = {
    "nothing": lambda session: None,
    "an answer": lambda session: session.append(Block.assistant("said meanwhile " * 9)),
    "a note": lambda session: session.append(Block.note("seen by nobody " * 9)),
    "a retraction": lambda session: session.retract(session.position),
    "a system prompt": lambda session: session.configure(system_prompt="Be brief. " * 9),
    "tools": lambda session: session.configure(tools=[{"name": "read"}]),
    "a compaction": lambda session: session.compact(POLICY, limit=4_000),
    "a revert": lambda session: session.revert(),
}


@pytest.mark.slow
@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize(
    ("followed", "sees"),
    [("before", "an older view"), ("between", "the newest"), ("after", "an older view")],
)
def test_a_call_that_is_recorded_late_is_measured_by_what_it_saw(
    session: StoredSession, meanwhile: str, followed: str, sees: str
) -> None:
    models = session.log.context.read_models
    talk(store_of(session), session.key, 12)
    session.compact(POLICY, limit=4_000)
    session.append(*(Block.user(f"question {n} " * 90) for n in range(20)))
    at = None if sees == "the newest" else session.position - 30
    view = session.view(at=at)
    if followed == "before":
        models.catch_up()

    MEANWHILE[meanwhile](session)
    if followed != "after":
        models.catch_up()
    session.record_call(view, call_id="late")

    (call,) = rows(store_of(session), "model_calls")
    assert call["view_tokens"] == view.tokens
    assert rows(store_of(session), "sessions")[0]["view_tokens"] == session.view().tokens


def test_the_ledger_holds_every_boundary_and_what_became_of_it(session: StoredSession) -> None:
    talk(store_of(session), session.key, 12)
    first = session.compact(
        POLICY, limit=4_000, options=CompactionOptions(instructions="keep names \ud83d")
    )
    talk(store_of(session), session.key + " more", 1)
    session.append(*(Block.user(f"question {n} " * 90) for n in range(20)))
    second = session.compact(POLICY, limit=4_000, options=CompactionOptions(activate=False))
    prepared = rows(store_of(session), "compactions")[1]
    session.activate()
    session.revert()

    ledger = rows(store_of(session), "compactions")
    (lineage,) = rows(store_of(session), "lineages")

    assert [row["outcome"] for row in ledger] == ["boundary", "boundary", "reverted"]
    assert [row["boundary"] for row in ledger] == [first.boundary, second.boundary, second.boundary]
    assert (ledger[0]["pre_tokens"], ledger[0]["post_tokens"]) == (
        first.pre_tokens,
        first.post_tokens,
    )
    assert ledger[0]["summariser"] == "extractive"
    assert ledger[0]["kept"] == json.dumps([list(run) for run in first.kept.runs])
    assert ledger[1]["previous"] == first.boundary
    assert prepared["activated_at"] is None
    assert ledger[1]["activated_at"] is not None
    assert ledger[1]["reverted_at"] == ledger[2]["recorded_at"]
    assert lineage["boundary"] == first.boundary
    requests = rows(store_of(session), "compaction_requests")
    assert [row["request_id"] for row in ledger] == [*(row["id"] for row in requests), None]
    assert requests[0]["instructions"] == "keep names \ufffd"
    view = "SELECT boundaries, activated, reverted FROM sessions_with_compactions WHERE id = ?"
    found = session.log.context.read_models.file.fetch_rows(view, (ledger[0]["session_id"],))
    assert found == [(2, 2, 1)]


def test_a_boundary_s_sizes_are_the_provider_s_once_it_has_reported_both(
    session: StoredSession,
) -> None:
    talk(store_of(session), session.key, 12)
    session.record_call(session.view(), call_id="before", usage=Usage(input=90_000))
    session.compact(POLICY, limit=4_000)
    (estimated,) = rows(store_of(session), "compactions")

    session.record_call(session.view(), call_id="after", usage=Usage(input=5_000))
    (reported,) = rows(store_of(session), "compactions")

    names = ("tokens_basis", "pre_tokens", "post_tokens")
    assert estimated["tokens_basis"] == "estimated"
    assert [reported[name] for name in names] == ["reported", 90_000, 5_000]


def test_what_failed_is_in_the_ledger(session: StoredSession) -> None:
    class Broken:
        name = "broken"

        def summarize(self, material: object) -> object:
            raise RuntimeError("no network")

    talk(store_of(session), session.key, 12)
    session.compact(
        POLICY, limit=4_000, options=CompactionOptions(summarizers=[cast(Any, Broken())])
    )

    failed, boundary = rows(store_of(session), "compactions")

    assert (failed["outcome"], failed["stood_in"]) == ("failed", "extractive")
    assert "no network" in str(failed["tried"])
    assert failed["request_id"] == boundary["request_id"] is not None


def test_a_lineage_beside_main_does_not_change_what_is_served(session: StoredSession) -> None:
    talk(store_of(session), session.key, 12)
    session.compact(POLICY, limit=4_000, options=CompactionOptions(lineage="what-if"))

    (row,) = rows(store_of(session), "sessions")

    assert row["view_tokens"] == session.view().tokens
    assert row["served_lineage"] is None
    assert row["utilisation"] == round(session.view().tokens / 200_000, 4)


def test_every_reference_between_rows_resolves(session: StoredSession) -> None:
    talk(store_of(session), session.key, 12)
    session.compact(POLICY, limit=4_000)
    session.fork("fork").append(Block.user("words"))
    with pytest.raises(NothingToCompactError):
        session.compact(POLICY, limit=4_000)
    session.record_call(session.view(), call_id="m1")
    models: ReadModels = session.log.context.read_models
    models.catch_up()

    with closing(sqlite3.connect(models.name)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        views = connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall()
        for (name,) in views:
            connection.execute(f"SELECT * FROM {name}").fetchall()  # noqa: S608 - our own names


def test_every_column_that_refers_is_declared_and_indexed(store: SessionStore) -> None:
    store.read_models.catch_up()
    asked = store.read_models.file.fetch_rows

    for (name,) in asked("SELECT name FROM sqlite_master WHERE type = 'table'"):
        if name.startswith("blocks_fts"):
            continue
        columns = asked("SELECT name FROM pragma_table_info(?)", (name,))
        referring = {column for (column,) in columns if column.endswith("_id")}
        keys = asked('SELECT "from" FROM pragma_foreign_key_list(?)', (name,))
        declared = {column for (column,) in keys}
        assert referring - declared <= {"call_id"}
        if name not in {"blocks", "lineages"}:
            query = (
                "SELECT info.name FROM pragma_index_list(?) AS list"
                " JOIN pragma_index_info(list.name) AS info WHERE info.seqno = 0"
            )
            assert declared <= {column for (column,) in asked(query, (name,))}
