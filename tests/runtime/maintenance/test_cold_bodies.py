"""Old bodies take less room, say what they said, and nobody who writes or reads is in the way."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from databases import asked, connected_to, each_database
from faulty import closing, texts

import cutbank
from cutbank import Block, SessionStore
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.maintenance import recompression
from cutbank.adapters.runtime.maintenance.maintenance import Maintenance
from cutbank.adapters.runtime.maintenance.maintenance_task import TaskOutcome
from cutbank.adapters.settings.idle_settings import MaintenanceSettings
from cutbank.adapters.storage.event_log.event_mapper import ZstdCompressor

from .conftest import Make, StillClock, sizes, storage_of, tell, text_of

Change = Callable[[str], None]


@pytest.fixture
def change(engine: str, database: str, store: SessionStore) -> Change:
    """Changes the database behind the store's back; `$` stands for the bytes `damaged`."""
    del store  # which makes it

    def changed(statement: str) -> None:
        if engine == "sqlite":
            with closing(Path(database)) as connection:
                connection.execute(statement.replace("$", "x'64616d61676564'"))
        else:
            with connected_to(database) as server:
                server.execute(statement.replace("$", r"'\x64616d61676564'::bytea").encode())

    return changed


@each_database
def test_bodies_that_are_cold_become_smaller_once_and_say_the_same(
    store: SessionStore, clock: StillClock, make: Make, change: Change
) -> None:
    tell(store, 0, 10)
    clock.advance(days=5)
    tell(store, 10, 20)
    before = sizes(store)
    clock.advance(days=2)

    (report, *_) = make(cold_after=7.0).run_due(clock.now)

    assert (report.chore, report.outcome, report.reason) == ("bodies", TaskOutcome.DONE, None)
    after = sizes(store)
    assert all(size < 1_000 for size in after[:10])
    assert after[10:] == before[10:]
    assert texts(store.session("a session")) == [text_of(number) for number in range(20)]
    assert verify(store).violations == []
    # Every version of cutbank reads such a frame in one piece.
    ((content,),) = asked(store, "SELECT content FROM bodies ORDER BY id LIMIT 1")
    assert zstandard.get_frame_parameters(content).content_size == len(text_of(0).encode())
    change("DELETE FROM chores")
    (report, *_) = make(cold_after=7.0).run_due(clock.now)
    assert (report.saved, sizes(store)) == (0, after)
    off = make(cold_after=None).run_due(clock.advance(days=800))
    assert "bodies" not in {report.chore for report in off}
    tell(store, 0, 5)  # the bodies are there already
    assert len(sizes(store)) == 20


def test_bodies_are_stored_in_small_batches_each_with_how_far_it_goes(
    store: SessionStore, clock: StillClock, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, batches = type(storage_of(store)), list[int]()
    replace = storage.replace_bodies

    def stopped_at_the_third(self: Any, smaller: Any, chore: str, record: str) -> int:
        if chore == "bodies":
            batches.append(len(smaller))
            if len(batches) == 3:
                raise KeyboardInterrupt
        return replace(self, smaller, chore, record)

    monkeypatch.setattr(recompression, "MAX_BATCH_BYTES", 400)
    monkeypatch.setattr(storage, "replace_bodies", stopped_at_the_third)
    tell(store, 0, 30)
    clock.advance(days=8)

    with pytest.raises(KeyboardInterrupt):
        make().run_due(clock.now)

    stored = sum(batches[:2])
    assert 0 < stored < 30
    assert [size < 1_000 for size in sizes(store)] == [True] * stored + [False] * (30 - stored)
    (report, *_) = make().run_due(clock.now)
    assert sum(batches) - batches[2] == 30
    assert report.saved > 0
    assert verify(store).violations == []


@each_database
def test_what_is_damaged_or_in_cipher_stays_as_it_is_and_damage_is_told(
    store: SessionStore, clock: StillClock, make: Make, change: Change
) -> None:
    tell(store, 0, 4)
    change("UPDATE bodies SET content = $ WHERE id = (SELECT min(id) FROM bodies)")
    change("UPDATE bodies SET content = substr(content, 2) WHERE id = (SELECT max(id) FROM bodies)")
    change(
        "UPDATE bodies SET key_id = 'a key', content = $"
        " WHERE id = (SELECT min(id) + 1 FROM bodies)"
    )
    before = sizes(store)

    (report, *_) = make().run_due(clock.advance(days=8))

    assert report.reason == "left alone, since damaged: 2; run cutbank verify"
    packed = sizes(store)
    assert (packed[0], packed[1], packed[3]) == (before[0], before[1], before[3])
    assert packed[2] < 1_000


@each_database
def test_a_body_that_is_changed_while_it_is_packed_stays_as_it_is(
    store: SessionStore,
    clock: StillClock,
    make: Make,
    change: Change,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody erases it, or puts it in cipher, after it was read."""
    storage = type(storage_of(store))
    replace = storage.replace_bodies

    def late(self: Any, smaller: Any, chore: str, record: str) -> int:
        if chore == "bodies":
            change("UPDATE bodies SET content = $ WHERE id = (SELECT min(id) FROM bodies)")
            change("UPDATE bodies SET key_id = 'k' WHERE id = (SELECT max(id) FROM bodies)")
        return replace(self, smaller, chore, record)

    monkeypatch.setattr(storage, "replace_bodies", late)
    tell(store, 0, 3)
    before = sizes(store)
    clock.advance(days=8)

    make().run_due(clock.now)

    erased, packed, in_cipher = sizes(store)
    assert (erased, in_cipher) == (len(b"damaged"), before[2])
    assert packed < 1_000


def test_what_begins_like_a_frame_and_what_is_compressed_already_are_packed_again(
    database: str, clock: StillClock
) -> None:
    said = [
        ZstdCompressor.MAGIC.decode("latin-1") + text_of(0),
        "".join(f"{number} {number * 7919 % 1009}\n" for number in range(9_000)),
    ]
    with cutbank.open(database, clock=clock, compress=True) as store:
        session = store.session("a session")
        for text in said:
            session.append(Block.user(text))
        before = sizes(store)
        clock.advance(days=8)

        settings = MaintenanceSettings(rest=0.0, level=19)
        (report, *_) = Maintenance(store, settings, clock).run_due(clock.now)

        assert report.saved > 0
        assert sizes(store)[1] < before[1]
        assert texts(session) == said
        assert verify(store).violations == []


def test_an_event_of_a_time_to_come_does_not_hold_up_those_after_it(
    store: SessionStore, clock: StillClock, make: Make
) -> None:
    clock.advance(days=4_000)
    tell(store, 0, 2)
    clock.advance(days=-4_000)
    tell(store, 2, 4)
    clock.advance(days=8)
    tell(store, 4, 6)

    make().run_due(clock.now)

    assert [size < 1_000 for size in sizes(store)] == [True] * 4 + [False] * 2
