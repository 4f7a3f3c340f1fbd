"""What any version has ever stored is read today as it was meant; `golden/` holds all of it.

Where a test here says that something is in no golden file, the stored format has grown:
`python scripts/make_golden.py NAME` adds files for today's. Where a test says that what is stored
has changed, it must not: databases that hold it are out there. Give the event class a new
`class_version` and an upcaster, or the database a migration.
"""

import json
import sqlite3
from base64 import b64decode
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from hashlib import blake2b
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, Literal, get_origin
from uuid import UUID

import pytest
from eventsourcing.persistence import JSONTranscoder

import cutbank
import cutbank.domain
from cutbank import Block
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.storage.event_log.event_mapper import (
    BODY_SIZE,
    EventMapper,
    ZstdCompressor,
    loads,
)
from cutbank.adapters.storage.event_log.keyed_hash import is_keyed_hash
from cutbank.adapters.storage.event_log.stored_row import StoredRow
from cutbank.adapters.storage.sqlite import sqlite_schema
from cutbank.domain.aggregate import Aggregate, carried, restored
from cutbank.domain.compaction import Compaction, CompactionState
from cutbank.domain.event import Event
from cutbank.domain.ranges import Ranges
from cutbank.domain.record import Record
from cutbank.domain.session import Session, SessionState

FOLDER = Path(__file__).parent / "golden"
ROWS = sorted(FOLDER.glob("*.jsonl"))
DATABASES = sorted(FOLDER.glob("*.sql"))
ENVELOPE = {"originator_id", "originator_version", "subject", "key_id", "timestamp"}


@cache
def golden_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def each_row() -> list[Any]:
    return [
        pytest.param(golden, id=f"{path.stem}: {golden['what']}")
        for path in ROWS
        for golden in golden_rows(path)
    ]


def mapper_of(golden: dict[str, Any]) -> EventMapper:
    """A mapper for one row, with the secret and the bodies that stand beside it."""
    mapper = EventMapper(JSONTranscoder())
    mapper.secret_of = lambda _: bytes.fromhex(golden["secret"])
    mapper.body_of = lambda _, digest: b64decode(golden["bodies"][digest.hex()])
    return mapper


def row_of(golden: dict[str, Any]) -> StoredRow:
    text = golden.get("state")
    return StoredRow(
        originator_id=UUID(golden["originator_id"]),
        originator_version=golden["originator_version"],
        topic=golden["topic"],
        state=text.encode() if text is not None else b64decode(golden["state_base64"]),
        subject=golden["subject"],
        key_id=golden["key_id"],
        tokens=0,
        digest=bytes.fromhex(golden["digest"]),
        carried=b"{}",
    )


def read(golden: dict[str, Any]) -> Event:
    return mapper_of(golden).to_domain_event(row_of(golden))


def tree_of(value: Any) -> Any:
    """All that a value holds, defaults included, as the golden files say it."""
    match value:
        case Record():
            fields = {name: getattr(value, name) for name in type(value).model_fields}
            tree = {name: tree_of(one) for name, one in fields.items()}
            unknown = {name: tree_of(one) for name, one in (value.model_extra or {}).items()}
            return {"class": type(value).__name__} | tree | unknown
        case Ranges():
            return str(value)
        case bytes():
            return f"{len(value)} bytes {blake2b(value, digest_size=16).hexdigest()}"
        case str() if len(value) >= BODY_SIZE:
            content = value.encode("utf-8", "surrogatepass")
            return f"{len(value)} characters {blake2b(content, digest_size=16).hexdigest()}"
        case datetime():
            return value.isoformat()
        case UUID():
            return str(value)
        case dict():
            return {name: tree_of(one) for name, one in value.items()}
        case list() | tuple():
            return [tree_of(one) for one in value]
        case _:
            return value


def in_json(tree: Any) -> Any:
    """A tree as it comes out of a file: halves that JSON joins are joined."""
    return json.loads(json.dumps(tree))


@pytest.mark.parametrize("golden", each_row())
def test_what_was_stored_is_read_as_it_was_meant(golden: dict[str, Any]) -> None:
    event = read(golden)

    assert is_at_least(in_json(tree_of(event)), golden["expected"])
    mapper, row = mapper_of(golden), row_of(golden)
    secret = bytes.fromhex(golden["secret"])
    assert is_keyed_hash(row.digest, mapper.plaintext(row), secret)
    for digest, content in mapper.bodies_of(row):
        assert is_keyed_hash(digest, content, secret)


def is_at_least(found: Any, expected: Any) -> bool:
    """Whether a tree is as expected, but for fields that are newer than the golden file."""
    if isinstance(expected, dict) and "class" in expected and isinstance(found, dict):
        return expected.keys() <= found.keys() and all(
            is_at_least(found[name], value) for name, value in expected.items()
        )
    if isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(map(is_at_least, found, expected))
    return bool(found == expected)


@pytest.mark.parametrize("golden", each_row())
def test_what_was_stored_is_stored_the_same_today(golden: dict[str, Any]) -> None:
    event, row = read(golden), row_of(golden)
    before = loads(mapper_of(golden).plaintext(row))
    if before.get("class_version", 1) < type(event).class_version:
        pytest.skip("a later version of the event is stored by now")
    mapper = mapper_of(golden)
    if "state_base64" in golden:
        mapper.compressor = ZstdCompressor()

    today = mapper.to_stored_event(event)

    after = loads(mapper.plaintext(today))
    assert datetime.fromisoformat(after.pop("timestamp")) == datetime.fromisoformat(
        before.pop("timestamp")  # `Z` and `+00:00` are one
    )
    if bodies := after.get("bodies"):  # what addresses are made of may change
        assert [body[:2] for body in bodies] == [body[:2] for body in before.pop("bodies")]
        del after["bodies"]
    assert after == before
    assert today.topic == row.topic
    contents = {mapper._decompressed(body.content) for body in today.bodies}
    golden_contents = {
        mapper._decompressed(b64decode(content)) for content in golden["bodies"].values()
    }
    assert contents == golden_contents


NOWHERE_STORED = ("cutbank.domain.backtest.", "cutbank.domain.fidelity.")
"""What a backtest measured is kept in its cache alone, under a fingerprint of the code that did."""


def classes_of_the_domain() -> Iterator[type[Record]]:
    """Every class that is stored."""
    for module in walk_packages(cutbank.domain.__path__, "cutbank.domain."):
        if module.name.startswith(NOWHERE_STORED):
            continue
        for thing in vars(import_module(module.name)).values():
            if (
                isinstance(thing, type)
                and issubclass(thing, Record)
                and thing.__module__ == module.name
                and thing not in {Record, Event}
            ):
                yield thing


def records_in(value: Any) -> Iterator[Record]:
    match value:
        case Record():
            yield value
            for name in type(value).model_fields:
                yield from records_in(getattr(value, name))
        case dict():
            for one in value.values():
                yield from records_in(one)
        case list() | tuple():
            for one in value:
                yield from records_in(one)
        case _:
            pass


@pytest.mark.parametrize("compressed", [False, True])
def test_every_event_class_and_field_is_in_a_golden_file(*, compressed: bool) -> None:
    paths = [path for path in ROWS if (".compressed" in path.name) == compressed]
    rows = [golden for path in paths for golden in golden_rows(path)]
    events = [read(golden) for golden in rows]
    stored = {
        (type(record), name)
        for event in events
        for record in records_in(event)
        for name in record.model_fields_set
    }
    with_defaults = {
        type(event)
        for event in events
        if event.model_fields_set - ENVELOPE == required(type(event)) - ENVELOPE
    }
    versions = {
        (type(event), loads(mapper_of(golden).plaintext(row_of(golden))).get("class_version", 1))
        for event, golden in zip(events, rows, strict=True)
    }

    classes = {kind for kind in classes_of_the_domain() if kind.model_fields}
    kinds = {kind for kind in classes if issubclass(kind, Event)}
    fields = {
        (kind, name)
        for kind in classes
        for name, field in kind.model_fields.items()
        if get_origin(field.annotation) is not Literal or field.is_required()
        if not is_a_base(kind)
    }
    assert len(kinds) > 20
    assert fields - stored == set()
    assert kinds - with_defaults == set()
    assert {
        (kind, version) for kind in kinds for version in range(1, kind.class_version + 1)
    } - versions == set()


def required(kind: type[Record]) -> set[str]:
    return {name for name, field in kind.model_fields.items() if field.is_required()}


def is_a_base(kind: type[Record]) -> bool:
    return bool(kind.__subclasses__()) and not issubclass(kind, Event)


# Whole databases


@pytest.fixture(params=DATABASES, ids=lambda path: path.stem)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Any]:
    """A database as an older version has left it, and what it served from it."""
    dump: Path = request.param
    path = tmp_path / "log.db"
    connection = sqlite3.connect(path)
    connection.executescript(dump.read_text(encoding="utf-8"))
    connection.close()
    return path, json.loads(dump.with_suffix(".views.json").read_text(encoding="utf-8"))


def test_a_database_of_any_version_is_opened_and_sound(database: tuple[Path, Any]) -> None:
    path, _ = database

    with cutbank.open(path) as store:
        verdict = verify(store)

        assert verdict.violations == []
        assert verdict.calls > 0
        assert verdict.boundaries > 0
        for session in store.sessions():
            if not session.state.closed:
                before = session.position
                assert session.append(Block.user("and on it goes")).last > before
        assert verify(store).ok


def test_a_database_of_any_version_serves_what_it_served(database: tuple[Path, Any]) -> None:
    path, served = database

    with cutbank.open(path) as store:
        for then in served:
            session = store.session(then["session"], create=False)
            view = session.view(
                at=then["at"],
                lineage=then["lineage"],
                lineage_version=then["lineage_version"],
            )
            assert [[entry.position, entry.text[:200]] for entry in view.entries] == then["entries"]
            assert (view.summary.text if view.summary else None) == then["summary"]
            assert view.system_prompt == then["system"]
            assert view.fingerprint == then["fingerprint"]


LATER = frozenset({"requested", "futile"})
"""What a lineage's state says since the golden files after v3."""


def test_the_state_beside_each_event_is_what_the_events_make_it(
    database: tuple[Path, Any], request: pytest.FixtureRequest
) -> None:
    path, _ = database
    is_old = request.node.callspec.id in {"v1", "v2", "v3"}
    aggregate: Aggregate[Any]

    with cutbank.open(path) as store:
        recorder = store.events.recorder
        for stream in recorder.select_streams():
            rows = recorder.select_events(stream.originator_id)
            states: Any = SessionState if stream.lineage is None else CompactionState
            kind: Any = Session if stream.lineage is None else Compaction
            # A fork's and a based lineage's first state is inherited.
            aggregate = kind(
                stream.originator_id,
                version=rows[0].originator_version,
                state=restored(states, json.loads(rows[0].carried)),
                subject="",
                clock=store.events.clock,
            )
            for row in rows[1:]:
                aggregate.evolve(store.events.mapper.to_domain_event(row))
                stored = json.loads(row.carried)
                made = carried(aggregate.state)
                # A field that is younger than the row is not in it, and means nothing there.
                young = LATER if is_old else frozenset()
                assert {name: made[name] for name in made if name not in young} == stored
                aggregate.state = restored(states, stored)


def test_there_is_a_golden_database_of_every_version() -> None:
    versions = set()
    for dump in DATABASES:
        marks = dict(
            line.removeprefix("PRAGMA ").rstrip(";").split(" = ")
            for line in dump.read_text(encoding="utf-8").splitlines()[:2]
        )
        assert int(marks["application_id"]) == sqlite_schema.APPLICATION_ID
        versions.add(int(marks["user_version"]))

    assert versions == set(range(1, sqlite_schema.VERSION + 1))


def test_a_migrated_database_has_the_tables_of_a_new_one(
    database: tuple[Path, Any], tmp_path: Path
) -> None:
    for path in (database[0], tmp_path / "new.db"):
        cutbank.open(path).close()

    assert tables(database[0]) == tables(tmp_path / "new.db")


def tables(path: Path) -> set[str]:
    """Each table, index and trigger as SQL.

    A table that was renamed stands in quotes, and a column that was added in no line of its own.
    """
    connection = sqlite3.connect(path)
    try:
        found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        plain = {" ".join(sql.replace('"', "").split()) for (sql,) in found}
        return {sql for sql in plain if "sqlite_sequence" not in sql}
    finally:
        connection.close()


def test_a_golden_database_holds_all_that_can_happen(database: tuple[Path, Any]) -> None:
    """At least what happened to version 1: later ones may add to it."""
    path, _ = database

    with cutbank.open(path) as store:
        streams = store.events.recorder.select_streams()
        kinds = {
            row.topic.removeprefix("cutbank:")
            for stream in streams
            for row in store.events.recorder.select_events(stream.originator_id)
        }

    assert {(stream.session, stream.lineage) for stream in streams} >= {
        ("story", None),
        ("story", "main"),
        ("story", "what if"),
        ("fork", None),
        ("fork", "main"),
        ("imported", "recorded"),
    }
    assert kinds >= {
        "BlockPinned",
        "BlockUnpinned",
        "BlocksHidden",
        "BlocksRetracted",
        "BoundaryActivated",
        "CompactionFailed",
        "CompactionReverted",
        "ModelCalled",
        "SessionClosed",
        "ToolCallAbandoned",
    }


def test_golden_files_of_a_version_belong_together() -> None:
    names = {path.name.partition(".")[0] for path in FOLDER.iterdir()}

    assert names
    for name in names:
        assert sorted(path.name for path in FOLDER.glob(f"{name}.*")) == [
            f"{name}.compressed.jsonl",
            f"{name}.jsonl",
            f"{name}.sql",
            f"{name}.views.json",
        ]
        plain, packed = (golden_rows(FOLDER / f"{name}{end}.jsonl") for end in ("", ".compressed"))
        assert [row["what"] for row in plain] == [row["what"] for row in packed]
        assert any("state_base64" in row for row in packed)
        assert not any("state_base64" in row for row in plain)


def test_a_fork_s_rows_begin_where_it_left_its_parent(database: tuple[Path, Any]) -> None:
    path, _ = database
    with cutbank.open(path) as store:
        fork = store.session("fork", create=False)
        rows = store.events.recorder.select_events(fork.id)
        opened = store.events.opened("default", "fork").fork

    assert opened is not None
    assert rows[0].originator_version == opened.position + 1
    assert all(b.originator_version == a.originator_version + 1 for a, b in pairwise(rows))
