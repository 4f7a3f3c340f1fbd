"""What became of requests, as the ledger tells it: who was at it, and what it cost."""

from typing import Any

from read_model_rows import table

from cutbank import SessionStore, StoredSession
from cutbank.domain.compaction import Compaction
from cutbank.domain.compaction_events import Trigger

from .conftest import talk


def lineage_of(session: StoredSession) -> Compaction:
    return session.log.events.open_compaction(session.namespace, session.key, "main")


def request(session: StoredSession, by: str | None = None) -> int:
    lineage = lineage_of(session)
    version = lineage.request(
        trigger=Trigger.IDLE, policy="p", after=session.position, by=by, lease_s=60.0
    )
    session.log.events.save(lineage)
    return version


def requests(store: SessionStore) -> list[dict[str, Any]]:
    store.read_models.catch_up()
    return table(store.read_models, "compaction_requests")


def test_a_request_is_open_until_it_fails(store: SessionStore) -> None:
    session = store.session("s")
    talk(store, "s", 2)
    request(session, by="w1")
    (open_one,) = requests(store)
    lineage = lineage_of(session)
    lineage.fail(reason="no luck")
    store.events.save(lineage)
    (ended,) = requests(store)

    assert (open_one["worker"], open_one["ended_at"], open_one["outcome"]) == ("w1", None, None)
    assert open_one["leased_until"] > open_one["requested_at"]
    assert (ended["outcome"], bool(ended["ended_at"])) == ("failed", True)


def test_a_request_that_another_one_follows_was_taken_over(store: SessionStore) -> None:
    session = store.session("s")
    talk(store, "s", 2)
    request(session, by="w1")
    requests(store)  # in two batches
    request(session, by="w2")
    request(session, by="w3")

    assert [row["outcome"] for row in requests(store)] == ["taken over", "taken over", None]


def test_what_an_unused_summary_cost_belongs_to_the_request_that_it_was_written_for(
    store: SessionStore,
) -> None:
    session = store.session("s")
    talk(store, "s", 2)
    late = request(session, by="w1")
    request(session)
    lineage = lineage_of(session)
    lineage.reject(request=late, reason="late", rule="lost-lease", summarizer="llm", cost_usd=0.5)
    store.events.save(lineage)
    first, _ = requests(store)

    (row,) = table(store.read_models, "compactions")

    assert row["request_id"] == first["id"]


def test_what_an_unused_summary_cost_belongs_to_a_request_even_after_the_end(
    store: SessionStore,
) -> None:
    session = store.session("s")
    talk(store, "s", 2)
    request(session, by="w1")
    lineage = lineage_of(session)
    lineage.fail(reason="no luck")
    lineage.reject(reason="late", rule="lost-lease", summarizer="llm", model="m", cost_usd=0.25)
    lineage.fail(reason="nobody asked for this one")
    store.events.save(lineage)
    (known,) = requests(store)

    rows = table(store.read_models, "compactions")

    assert [(row["outcome"], row["request_id"], row["cost_usd"]) for row in rows] == [
        ("failed", known["id"], None),
        ("rejected", known["id"], 0.25),
        ("failed", None, None),
    ]
