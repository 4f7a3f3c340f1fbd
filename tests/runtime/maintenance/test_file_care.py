"""Old bodies and files take less room, keep their content, and block no other work."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from clock import StillClock
from databases import asked, connected_to, each_database
from faulty import closing, texts

import cutbank
from cutbank import Block, MaintenanceSettings, SessionStore, verify
from cutbank.adapters.runtime.maintenance import recompression
from cutbank.adapters.runtime.maintenance.maintenance import Maintenance
from cutbank.adapters.runtime.maintenance.maintenance_task import TaskOutcome
from cutbank.adapters.storage.event_log.event_mapper import ZstdCompressor

from .conftest import Site, sizes, tell, text_of

Change = Callable[[str], None]
DONE = TaskOutcome.DONE


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
    site: Site, change: Change
) -> None:
    site.tell(0, 10)
    site.clock.advance(days=5)
    site.tell(10, 20)
    before = site.sizes()
    site.clock.advance(days=2)

    (report, *_) = site.make(cold_after=7.0).run_due(site.clock.now)

    assert (report.chore, report.outcome, report.reason) == ("bodies", DONE, None)
    after = site.sizes()
    assert all(size < 1_000 for size in after[:10])
    assert after[10:] == before[10:]
    assert texts(site.session) == [text_of(number) for number in range(20)]
    assert verify(site.store).violations == []
    # Every version of cutbank reads such a frame in one piece.
    ((content,),) = asked(site.store, "SELECT content FROM bodies ORDER BY id LIMIT 1")
    assert zstandard.get_frame_parameters(content).content_size == len(text_of(0).encode())
    change("DELETE FROM chores")
    (report, *_) = site.make(cold_after=7.0).run_due(site.clock.now)
    assert (report.saved, site.sizes()) == (0, after)
    off = site.make(cold_after=None).run_due(site.clock.advance(days=800))
    assert "bodies" not in {report.chore for report in off}
    site.tell(0, 5)  # the bodies are there already
    assert len(site.sizes()) == 20


def test_bodies_are_stored_in_small_batches_each_with_how_far_it_goes(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, batches = type(site.storage), list[int]()
    replace = storage.replace_bodies

    def stopped_at_the_third(self: Any, smaller: Any, chore: str, record: str) -> int:
        if chore == "bodies":
            batches.append(len(smaller))
            if len(batches) == 3:
                raise KeyboardInterrupt
        return replace(self, smaller, chore, record)

    monkeypatch.setattr(recompression, "MAX_BATCH_BYTES", 400)
    monkeypatch.setattr(storage, "replace_bodies", stopped_at_the_third)
    site.tell(0, 30)
    site.clock.advance(days=8)

    with pytest.raises(KeyboardInterrupt):
        site.run_due()

    stored = sum(batches[:2])
    assert 0 < stored < 30
    assert [size < 1_000 for size in site.sizes()] == [True] * stored + [False] * (30 - stored)
    (report, *_) = site.run_due()
    assert sum(batches) - batches[2] == 30
    assert report.saved > 0
    assert verify(site.store).violations == []


@each_database
def test_what_is_damaged_or_in_cipher_stays_as_it_is_and_damage_is_told(
    site: Site, change: Change
) -> None:
    site.tell(0, 4)
    change("UPDATE bodies SET content = $ WHERE id = (SELECT min(id) FROM bodies)")
    change("UPDATE bodies SET content = substr(content, 2) WHERE id = (SELECT max(id) FROM bodies)")
    change(
        "UPDATE bodies SET key_id = 'a key', content = $"
        " WHERE id = (SELECT min(id) + 1 FROM bodies)"
    )
    before = site.sizes()

    (report, *_) = site.make().run_due(site.clock.advance(days=8))

    assert report.reason == "left alone, since damaged: 2; run cutbank verify"
    packed = site.sizes()
    assert (packed[0], packed[1], packed[3]) == (before[0], before[1], before[3])
    assert packed[2] < 1_000


@each_database
def test_a_body_that_is_changed_while_it_is_packed_stays_as_it_is(
    site: Site, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is erased or encrypted after it was read."""
    storage = type(site.storage)
    replace = storage.replace_bodies

    def late(self: Any, smaller: Any, chore: str, record: str) -> int:
        if chore == "bodies":
            change("UPDATE bodies SET content = $ WHERE id = (SELECT min(id) FROM bodies)")
            change("UPDATE bodies SET key_id = 'k' WHERE id = (SELECT max(id) FROM bodies)")
        return replace(self, smaller, chore, record)

    monkeypatch.setattr(storage, "replace_bodies", late)
    site.tell(0, 3)
    before = site.sizes()
    site.clock.advance(days=8)

    site.run_due()

    erased, packed, in_cipher = site.sizes()
    assert (erased, in_cipher) == (len(b"damaged"), before[2])
    assert packed < 1_000


def test_what_begins_like_a_frame_and_what_is_compressed_already_are_packed_again(
    database: str, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recompression, "COMPRESSION_LEVEL", 19)
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

        settings = MaintenanceSettings()
        (report, *_) = Maintenance(store, settings).run_due(clock.now)

        assert report.saved > 0
        assert sizes(store)[1] < before[1]
        assert texts(session) == said
        assert verify(store).violations == []


def test_an_event_of_a_time_to_come_does_not_hold_up_those_after_it(site: Site) -> None:
    site.clock.advance(days=4_000)
    site.tell(0, 2)
    site.clock.advance(days=-4_000)
    site.tell(2, 4)
    site.clock.advance(days=8)
    site.tell(4, 6)

    site.run_due()

    assert [size < 1_000 for size in site.sizes()] == [True] * 4 + [False] * 2


def test_a_store_that_did_chores_leaves_one_file_behind(
    database: str, clock: StillClock, tmp_path: Path
) -> None:
    with cutbank.open(database, clock=clock) as store:
        tell(store, 0, 3)
        Maintenance(store, MaintenanceSettings()).run_due(clock.advance(days=8))

    left = sorted(file.name for file in tmp_path.iterdir())
    assert left == ["test.db", "test.db-chores"]
    assert (tmp_path / "test.db-chores").stat().st_size == 0
    with cutbank.open(database) as store:
        assert verify(store).violations == []
