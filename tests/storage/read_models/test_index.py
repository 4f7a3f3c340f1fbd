"""What the tables say: sessions, their digests, the meter of their calls, the ledger."""

from typing import Any, cast

import pytest
from opened_stores import store_of
from read_model_rows import table

import cutbank
from cutbank import Block, CompactionOptions, Parent, SessionStore, StoredSession, Trigger, Usage
from cutbank.domain.blocks import Origin
from cutbank.domain.compaction import Compaction
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom

from .conftest import talk

POLICY = ReserveHeadroom(reserve_tokens=500, keep_tokens=600)


def rows(store: SessionStore, name: str, where: str = "1") -> list[dict[str, object]]:
    store.read_models.catch_up()
    return table(store.read_models, name, where)


def test_what_a_provider_counted_says_how_full_a_session_is(store: SessionStore) -> None:
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

    assert unreported["in_use"] == unreported["view_tokens"]
    assert reported["reported"] == 700 < in_use
    assert reported["in_use"] == still["in_use"] == taken_back["in_use"] == in_use
    limit = cutbank.measure_context(session).limit.tokens
    assert reported["context_limit"] == limit
    assert reported["utilisation"] == round(in_use / limit, 4)


def test_after_a_boundary_in_use_is_what_the_meter_estimates(store: SessionStore) -> None:
    session = store.session("s")
    for number in range(40):
        session.append(Block.user(f"{number}: " + "words " * 300))
    session.record_call(session.view(), call_id="c", usage=Usage(input=90_000))
    session.compact(limit=20_000)
    (row,) = rows(store, "sessions")

    in_use = cutbank.measure_context(session).in_use.tokens
    assert (row["in_use"], row["reported"]) == (in_use, None)
    assert row["view_tokens"] == session.view().tokens < in_use < 90_000


def test_a_parent_is_named_whichever_was_there_first(store: SessionStore) -> None:
    worked_for = Parent(namespace="default", key="lead", tool_call_id="c7")
    store.session("before", parent=worked_for, title="About the river")
    rows(store, "sessions")
    store.session("with", parent=worked_for)
    store.session("lead")
    store.session("after", parent=worked_for)

    found = {row["key"]: row for row in rows(store, "sessions")}

    lead = found.pop("lead")
    assert lead["parent_id"] is None
    assert {(row["parent_id"], row["parent_call"]) for row in found.values()} == {
        (lead["id"], "c7")
    }
    assert (found["before"]["name"], found["before"]["title"]) == ("About the river",) * 2
    assert (found["after"]["name"], found["after"]["title"]) == ("after", None)


@pytest.mark.parametrize(
    ("said", "prompt"),
    [
        ("<date>2026</date>\n<rules>\nnever\n</rules>\n\nMend\nit.", "Mend it."),
        ("<context>only this</context>", None),
        ("<context>that does not end", None),
        ("a < b, <b>really</b>", "a < b, <b>really</b>"),
    ],
)
def test_a_session_is_called_by_what_was_said_behind_an_agent_s_tags(
    store: SessionStore, said: str, prompt: str | None
) -> None:
    store.session("s").append(Block.user(said))

    (row,) = rows(store, "sessions")
    assert row["first_prompt"] == prompt


def test_the_meter_says_what_each_call_saw_and_cost(session: StoredSession) -> None:
    session.append(Block.user("word " * 400_000))
    view = session.view()
    session.append(Block.assistant("said before the call was recorded"), Block.note("not sent"))
    usage = Usage(input=90_000, cache_read=80_000, output=12)
    session.record_call(view, call_id="m1", usage=usage, cost_usd=0.25, latency_s=1.5)
    session.record_call(view, call_id="m1", cost_usd=0.25)

    first, last = rows(store_of(session), "model_calls")

    expected = {
        "fingerprint": view.fingerprint,
        "prompt_tokens": 170_000,
        "cached_tokens": 80_000,
        "output_tokens": 12,
        "utilisation": 0.85,
        "level": "high",
        "cost_usd": 0.25,
        "latency_s": 1.5,
        "repeated": 1,
    }
    assert {name: first[name] for name in expected} == expected
    assert (last["repeated"], last["level"]) == (0, None)
    assert session.log.context.read_models.file.fetch_rows("SELECT calls, cost_usd FROM costs") == [
        (1, 0.25)
    ]


def test_a_session_is_as_old_as_the_newest_block_whose_source_says_when(
    session: StoredSession,
) -> None:
    times = ("2025-03-10T09:30:00Z", None)
    blocks = [Block.user("a", origin=Origin(format="claude-code", time=time)) for time in times]
    session.append(*blocks)

    (row,) = rows(store_of(session), "sessions")

    assert row["said_at"] == "2025-03-10T09:30:00.000Z"


def test_the_ledger_holds_every_boundary_and_what_became_of_it(session: StoredSession) -> None:
    store = store_of(session)
    talk(store, session.key, 12)
    first = session.compact(
        POLICY, limit=4_000, options=CompactionOptions(instructions="keep names \ud83d")
    )
    session.append(*(Block.user(f"question {n} " * 90) for n in range(20)))
    second = session.compact(POLICY, limit=4_000, options=CompactionOptions(activate=False))
    prepared = rows(store, "compactions")[1]
    session.activate()
    session.revert()

    ledger, requests = rows(store, "compactions"), rows(store, "compaction_requests")
    (lineage,) = rows(store, "lineages")

    assert [(row["outcome"], row["boundary"], row["request_id"]) for row in ledger] == [
        ("boundary", first.boundary, requests[0]["id"]),
        ("boundary", second.boundary, requests[1]["id"]),
        ("reverted", second.boundary, None),
    ]
    sizes = (ledger[0]["pre_tokens"], ledger[0]["post_tokens"])
    assert sizes == (first.pre_tokens, first.post_tokens)
    assert ledger[0]["summariser"] == "extractive"
    assert ledger[0]["kept_positions"] == len(first.kept)
    assert ledger[1]["previous"] == first.boundary
    assert prepared["activated_at"] is None
    assert ledger[1]["activated_at"] is not None
    assert ledger[1]["reverted_at"] == ledger[2]["recorded_at"]
    assert lineage["boundary"] == first.boundary
    assert requests[0]["instructions"] == "keep names \ufffd"
    view = "SELECT boundaries, activated, reverted FROM sessions_with_compactions WHERE id = ?"
    assert store.read_models.file.fetch_rows(view, (ledger[0]["session_id"],)) == [(2, 2, 1)]


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


# What became of requests


def request(session: StoredSession, by: str | None = None) -> int:
    lineage = lineage_of(session)
    version = lineage.request(
        trigger=Trigger.IDLE, policy="p", after=session.position, by=by, lease_s=60.0
    )
    session.log.events.save(lineage)
    return version


def lineage_of(session: StoredSession) -> Compaction:
    return session.log.events.open_compaction(session.namespace, session.key, "main")


def test_a_request_is_open_until_it_fails(session: StoredSession) -> None:
    store = store_of(session)
    request(session, by="w1")
    (open_one,) = rows(store, "compaction_requests")
    lineage = lineage_of(session)
    lineage.fail(reason="no luck")
    store.events.save(lineage)
    (ended,) = rows(store, "compaction_requests")

    assert (open_one["worker"], open_one["ended_at"], open_one["outcome"]) == ("w1", None, None)
    assert str(open_one["leased_until"]) > str(open_one["requested_at"])
    assert (ended["outcome"], bool(ended["ended_at"])) == ("failed", True)


def test_a_failure_settles_a_session_only_as_far_as_it_looked(session: StoredSession) -> None:
    store = store_of(session)
    session.append(Block.user("one"), Block.user("two"))
    lineage = lineage_of(session)
    for after in (session.position - 1, session.position):
        lineage.fail(reason="nothing to gain", after=after)
        store.events.save(lineage)

    assert [row["rule"] for row in rows(store, "compactions")] == [None, "nothing-gained"]


def test_a_request_that_another_one_follows_was_taken_over(session: StoredSession) -> None:
    store = store_of(session)
    request(session, by="w1")
    rows(store, "compaction_requests")  # in two batches
    request(session, by="w2")
    request(session, by="w3")

    outcomes = [row["outcome"] for row in rows(store, "compaction_requests")]
    assert outcomes == ["taken over", "taken over", None]


def test_what_an_unused_summary_cost_belongs_to_the_request_that_it_was_written_for(
    session: StoredSession,
) -> None:
    store = store_of(session)
    late = request(session, by="w1")
    request(session)
    lineage = lineage_of(session)
    how = {"reason": "late", "rule": "lost-lease", "summarizer": "llm"}
    lineage.reject(request=late, **how, cost_usd=0.5)
    lineage.fail(reason="no luck")
    lineage.reject(**how, cost_usd=0.25)
    lineage.fail(reason="nobody asked for this one")
    store.events.save(lineage)
    first, last = (row["id"] for row in rows(store, "compaction_requests"))

    found = rows(store, "compactions")

    assert [(row["outcome"], row["request_id"], row["cost_usd"]) for row in found] == [
        ("rejected", first, 0.5),
        ("failed", last, None),
        ("rejected", last, 0.25),
        ("failed", None, None),
    ]
