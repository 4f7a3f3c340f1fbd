"""Two measurements have one fingerprint only where they come to the same."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from clock import Clock

import cutbank
from cutbank import Block, CompactionOptions, SessionStore, Settings, StoredSession
from cutbank.adapters.analysis.backtest import result_cache
from cutbank.adapters.analysis.backtest.cells import ControlItem, MeasuredSession
from cutbank.adapters.analysis.backtest.result_cache import fingerprint_item
from cutbank.adapters.settings.compaction_settings import CompactionSettings
from cutbank.domain.backtest_cell import Setup

from .conftest import talk

SETUP = Setup(policy="pi", limit=1_000)


def test_a_session_has_the_same_digest_in_any_database() -> None:
    digests = []
    for _ in range(2):
        with cutbank.open(":memory:", clock=Clock()) as place:
            talk(place, "a", 3)
            digests.append(digest_of(place.session("a")))
    time = Clock()
    time.now += timedelta(days=1)
    with cutbank.open(":memory:", clock=time) as place:
        talk(place, "a", 3)
        digests.append(digest_of(place.session("a")))

    assert digests[0] == digests[1] != digests[2]


def digest_of(session: StoredSession) -> str:
    return MeasuredSession.read(session, Settings()).digest


CHANGES: list[Callable[[StoredSession], Any]] = [
    lambda session: session.append(Block.user("More?")),
    lambda session: session.append(Block.note("Not sent to a model.")),
    lambda session: session.pin(3),
    lambda session: session.hide(6),
    lambda session: session.retract(6),
    lambda session: session.configure(system_prompt="Be brief."),
    lambda session: session.compact("pi", options=CompactionOptions(settings={"keep_tokens": 200})),
]


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_is_said_or_decided_changes_it(
    store: SessionStore, change: Callable[[StoredSession], Any]
) -> None:
    talk(store, "a", 6)
    session = store.session("a")
    before = digest_of(session)

    change(session)

    assert digest_of(session) != before


def test_whatever_a_cell_follows_from_changes_its_fingerprint(store: SessionStore) -> None:
    for key in "ab":
        talk(store, key, 2)
        session = store.session(key)
        session.record_call(session.view(), call_id="one", model="m")
    log = MeasuredSession.read(store.session("a"), Settings())
    prices = Settings.model_validate({"models": {"m": {"input_usd": 1.0, "output_usd": 2.0}}})
    gain = Settings(compaction=CompactionSettings(minimum_gain=0.2))
    named = SETUP.model_copy(update={"model": "m"})
    changed = ({"limit": 2}, {"budget": 2}, {"settings": {"a": 1}}, {"summarizer": "other"})
    found = [
        fingerprint_item(log, SETUP),
        fingerprint_item(MeasuredSession.read(store.session("b"), Settings()), SETUP),
        fingerprint_item(replace(log, settings=gain), SETUP),
        fingerprint_item(replace(log, settings=prices), SETUP),
        fingerprint_item(log, named),
        fingerprint_item(replace(log, settings=prices), named),
        fingerprint_item(log, ControlItem(1_000, (500,))),
        fingerprint_item(log, ControlItem(1_000, (600,))),
        *(fingerprint_item(log, SETUP.model_copy(update=one)) for one in changed),
    ]

    assert len(set(found)) == len(found)
    assert fingerprint_item(log, SETUP) == found[0]
    by_model = SETUP.model_copy(update={"summarizer": "llm"})
    assert fingerprint_item(log, by_model) is None


@pytest.mark.parametrize("layer", ["domain", "projections", "adapters"])
def test_the_code_that_measures_is_part_of_it(
    layer: str, store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(store, "a", 1)
    log = MeasuredSession.read(store.session("a"), Settings())
    before = fingerprint_item(log, SETUP)
    assert any((result_cache.ROOT / layer).rglob("*.py"))
    monkeypatch.setattr(result_cache, "ROOT", tmp_path)
    hashes = []
    for code in ("a = 1", "a = 2"):
        (tmp_path / layer / "part").mkdir(parents=True, exist_ok=True)
        (tmp_path / layer / "part" / "one.py").write_text(code)
        hashes.append(result_cache.hash_own_code.__wrapped__())
    monkeypatch.setattr(result_cache, "hash_own_code", lambda: hashes[0])

    assert hashes[0] != hashes[1]
    assert fingerprint_item(log, SETUP) != before
