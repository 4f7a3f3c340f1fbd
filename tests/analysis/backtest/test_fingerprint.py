"""Two measurements have one fingerprint only where they come to the same."""

from datetime import UTC, datetime
from pathlib import Path

from clock import Clock
from databases import on_sqlite

import cutbank
from cutbank import Block, CompactionOptions, SessionStore
from cutbank.adapters.analysis.backtest.fingerprint import (
    MEASURING_FOLDERS,
    _hash_files,
    fingerprint_item,
    hash_measuring_code,
)
from cutbank.adapters.analysis.backtest.session_log import MeasuredSession
from cutbank.adapters.analysis.backtest.worker_messages import ControlItem
from cutbank.adapters.settings.compaction_settings import CompactionSettings
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.backtest.cell import Setup
from cutbank.domain.models import ModelFacts, Prices

from .conftest import talk

SETUP = Setup(policy="pi", limit=1_000)


def test_a_session_has_the_same_digest_in_any_database(store: SessionStore) -> None:
    time = Clock()
    with cutbank.open(":memory:", clock=time) as one, cutbank.open(":memory:", clock=time) as other:
        found = []
        for place in (one, other):
            time.now = datetime(2026, 1, 1, tzinfo=UTC)
            talk(place, "a", 3)
            found.append(MeasuredSession.read(place.session("a")).digest)
    talk(store, "a", 3)

    assert found[0] == found[1]
    assert MeasuredSession.read(store.session("a")).digest != found[0], (
        "it was said at another time"
    )


@on_sqlite
def test_whatever_is_said_or_decided_changes_it(store: SessionStore) -> None:
    rows: list[object] = [
        lambda session: session.append(Block.user("More?")),
        lambda session: session.append(Block.note("Seen by nobody.")),
        lambda session: session.pin(3),
        lambda session: session.hide(6),
        lambda session: session.retract(6),
        lambda session: session.configure(system_prompt="Be brief."),
        lambda session: session.compact(
            "pi", options=CompactionOptions(settings={"keep_tokens": 200})
        ),
    ]
    for number, change in enumerate(rows):
        talk(store, str(number), 6)
        session = store.session(str(number))
        before = MeasuredSession.read(session).digest

        change(session)  # type: ignore[operator]

        assert MeasuredSession.read(session).digest != before, number


@on_sqlite
def test_a_log_is_the_same_when_it_was_sent(store: SessionStore) -> None:
    talk(store, "a", 3)
    store.session("a").append(Block.user("half a pair: \ud83d"))
    log = MeasuredSession.read(store.session("a"))

    sent = MeasuredSession.unpack(log.pack())

    assert sent == log
    assert sent.digest == log.digest


def test_whatever_a_cell_follows_from_changes_its_fingerprint() -> None:
    facts = ModelFacts("m", prices=(Prices(1.0, 2.0),))
    settings, other = Settings(), Settings(compaction=CompactionSettings(minimum_gain=0.2))
    found = [
        fingerprint_item("d", SETUP, None, settings),
        fingerprint_item("e", SETUP, None, settings),
        fingerprint_item("d", SETUP, facts, settings),
        fingerprint_item("d", SETUP, None, other),
        fingerprint_item("d", SETUP.model_copy(update={"limit": 2}), None, settings),
        fingerprint_item("d", SETUP.model_copy(update={"budget": 2}), None, settings),
        fingerprint_item("d", SETUP.model_copy(update={"settings": {"a": 1}}), None, settings),
        fingerprint_item("d", SETUP.model_copy(update={"summarizer": "recorded"}), None, settings),
        fingerprint_item("d", ControlItem(1_000, (500,)), None, settings),
        fingerprint_item("d", ControlItem(1_000, (600,)), None, settings),
    ]

    assert len(set(found)) == len(found)
    assert fingerprint_item("d", SETUP, None, Settings()) == found[0]


def test_what_a_model_writes_has_none() -> None:
    setup = SETUP.model_copy(update={"summarizer": "llm"})

    assert fingerprint_item("d", setup, None, Settings()) is None


def test_the_code_that_measures_is_part_of_it() -> None:
    root = Path(cutbank.__file__).parent

    assert all(any((root / folder).glob("*.py")) for folder in MEASURING_FOLDERS)
    assert hash_measuring_code() != _hash_files(iter(()))
