"""Old bodies take less room, say what they said, and nobody who writes or reads is in the way."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from databases import connected_to, on_sqlite
from faulty import closing, texts

import cutbank
from cutbank import Block, SessionStore
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.maintenance.maintenance import Chores
from cutbank.adapters.runtime.maintenance.task_record import ChoreOutcome
from cutbank.adapters.settings.maintenance_settings import ChoreSettings
from cutbank.adapters.storage.event_log.event_mapper import ZstdCompressor
from cutbank.domain.errors import CutbankError

from .conftest import Make, StillClock, sizes, tell, text_of

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


def test_bodies_that_are_cold_become_smaller_and_say_the_same(
    store: SessionStore, clock: StillClock, make: Make
) -> None:
    tell(store, 0, 10)
    clock.advance(days=5)
    tell(store, 10, 20)
    before = sizes(store)
    clock.advance(days=2)

    (report, *_) = make(cold_after=7.0).run_due(clock.now)

    assert (report.chore, report.outcome, report.reason) == ("bodies", ChoreOutcome.DONE, None)
    after = sizes(store)
    assert all(size < 1_000 for size in after[:10])
    assert after[10:] == before[10:]
    assert texts(store.session("a session")) == [text_of(number) for number in range(20)]
    assert verify(store).violations == []


def test_a_store_that_is_open_meanwhile_reads_on_and_appends_the_same_again(
    store: SessionStore, database: str, clock: StillClock, make: Make
) -> None:
    with cutbank.open(database, clock=clock) as other:
        tell(other, 0, 5)
        clock.advance(days=8)

        make().run_due(clock.now)

        assert texts(other.session("a session")) == [text_of(number) for number in range(5)]
        tell(other, 0, 5)  # the bodies are there already
        assert len(sizes(other)) == 5
        assert max(sizes(other)) < 1_000
        assert verify(other).violations == []


def test_each_part_of_the_log_is_gone_through_once(
    store: SessionStore, clock: StillClock, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    recorder = store.events.recorder
    select = recorder.select_notifications

    def watched(*arguments: Any, **named: Any) -> Any:
        found = select(*arguments, **named)
        seen.extend(event.id for event in found)
        return found

    monkeypatch.setattr(recorder, "select_notifications", watched)
    tell(store, 0, 10)
    clock.advance(days=8)
    make().run_due(clock.now)
    first, seen[:] = len(seen), []
    assert first >= 10

    tell(store, 10, 13)
    clock.advance(days=8)
    make().run_due(clock.now)

    newest = recorder.max_notification_id()
    assert [number for number in seen if number <= newest - 3] == []
    assert max(sizes(store)) < 1_000


def test_bodies_are_stored_in_small_batches_each_with_how_far_it_goes(
    store: SessionStore, clock: StillClock, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = store.events.recorder.storage()
    assert storage
    replace, batches = type(storage).replace_bodies, list[int]()

    def stopped_at_the_third(self: Any, smaller: Any, chore: str, record: str) -> int:
        if chore == "bodies":
            batches.append(len(smaller))
            if len(batches) == 3:
                raise KeyboardInterrupt
        return replace(self, smaller, chore, record)

    monkeypatch.setattr(smaller_bodies, "BATCH", 400)
    monkeypatch.setattr(type(storage), "replace_bodies", stopped_at_the_third)
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


def test_what_is_in_cipher_stays_as_it_is(
    store: SessionStore, clock: StillClock, make: Make, change: Change
) -> None:
    tell(store, 0, 3)
    change(
        "UPDATE bodies SET key_id = 'a key', content = $ WHERE id = (SELECT min(id) FROM bodies)"
    )
    before = sizes(store)
    clock.advance(days=8)

    (report, *_) = make().run_due(clock.now)

    assert (report.outcome, report.reason) == (ChoreOutcome.DONE, None)
    assert sizes(store)[0] == before[0]
    assert max(sizes(store)[1:]) < 1_000


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE bodies SET content = $ WHERE id = (SELECT min(id) FROM bodies)",
        "UPDATE bodies SET content = substr(content, 2) WHERE id = (SELECT min(id) FROM bodies)",
    ],
)
def test_what_is_damaged_stays_as_it_is_and_is_told(
    store: SessionStore, clock: StillClock, make: Make, change: Change, damage: str
) -> None:
    tell(store, 0, 3)
    change(damage)
    before = sizes(store)
    clock.advance(days=8)

    (report, *_) = make().run_due(clock.now)

    assert report.reason == "left alone, since damaged: 1; run cutbank verify"
    assert sizes(store)[0] == before[0]
    assert max(sizes(store)[1:]) < 1_000


def test_a_body_that_is_changed_while_it_is_packed_stays_as_it_is(
    store: SessionStore,
    clock: StillClock,
    make: Make,
    change: Change,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody erases it, or puts it in cipher, after it was read."""
    storage = store.events.recorder.storage()
    assert storage
    replace = type(storage).replace_bodies

    def late(self: Any, smaller: Any, chore: str, record: str) -> int:
        if chore == "bodies":
            change("UPDATE bodies SET content = $ WHERE id = (SELECT min(id) FROM bodies)")
            change("UPDATE bodies SET key_id = 'k' WHERE id = (SELECT max(id) FROM bodies)")
        return replace(self, smaller, chore, record)

    monkeypatch.setattr(type(storage), "replace_bodies", late)
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

        settings = ChoreSettings(rest=0.0, level=19)
        (report, *_) = Chores(store, settings, clock).run_due(clock.now)

        assert report.saved > 0
        assert sizes(store)[1] < before[1]
        assert texts(session) == said
        assert verify(store).violations == []


def test_what_would_not_become_smaller_is_not_written(
    store: SessionStore, clock: StillClock, make: Make, change: Change
) -> None:
    tell(store, 0, 3)
    clock.advance(days=8)
    make().run_due(clock.now)
    before = sizes(store)
    change("DELETE FROM chores")

    (report, *_) = make().run_due(clock.now)

    assert report.saved == 0
    assert sizes(store) == before


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


def test_nothing_is_recompressed_where_that_is_turned_off(
    store: SessionStore, clock: StillClock, make: Make
) -> None:
    tell(store, 0, 2)
    before = sizes(store)

    reports = make(cold_after=None).run_due(clock.advance(days=800))

    assert "bodies" not in {report.chore for report in reports}
    assert sizes(store) == before


def test_others_write_on_while_bodies_are_packed(
    store: SessionStore, database: str, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patience is over: nobody waits for the writers any more."""
    tell(store, 0, 60)
    clock.advance(days=8)
    monkeypatch.setattr(smaller_bodies, "BATCH", 400)
    chores = Chores(store, ChoreSettings(patience=0.0), clock)
    packed, wrote, failures = threading.Event(), threading.Event(), list[CutbankError]()
    said = 0

    def write() -> None:
        nonlocal said
        with cutbank.open(database, clock=clock) as other:
            session = other.session("another")
            while not packed.is_set():
                try:
                    session.append(Block.user(text_of(1_000 + said)))
                except CutbankError as error:
                    failures.append(error)
                    wrote.set()
                    return
                said += 1
                wrote.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert wrote.wait(60)
        (report, *_) = chores.run_due(clock.now)
    finally:
        packed.set()
        writer.join()

    assert report.outcome is ChoreOutcome.DONE
    assert failures == []
    assert texts(store.session("a session")) == [text_of(number) for number in range(60)]
    assert texts(store.session("another")) == [text_of(1_000 + number) for number in range(said)]
    assert verify(store).violations == []


@on_sqlite
def test_packed_bodies_are_frames_of_zstandard_that_say_how_long_they_are(
    store: SessionStore, database: str, clock: StillClock, make: Make
) -> None:
    """Every version of cutbank reads such a frame in one piece."""
    tell(store, 0, 1)
    clock.advance(days=8)

    make(level=19).run_due(clock.now)

    with closing(Path(database)) as connection:
        (content,) = connection.execute("SELECT content FROM bodies").fetchone()
    assert zstandard.get_frame_parameters(content).content_size == len(text_of(0).encode())
    assert zstandard.ZstdDecompressor().decompress(content) == text_of(0).encode()
