"""What any version has ever stored is read today as it was meant; `golden/` holds all of it.

Where a test here says that something is in no golden file, the stored format has grown:
`python scripts/make_golden.py NAME` adds files for today's. Where a test says that what is stored
has changed, it must not: databases that hold it are out there. Give the event class a new
`class_version` and an upcaster, or the database a migration.
"""

import json
import sqlite3
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from functools import cache
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, Literal, get_origin
from uuid import UUID

import pytest
from eventsourcing.persistence import JSONTranscoder
from served_views import check_served

import cutbank
import cutbank.domain
from cutbank import Block
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.storage.event_log.event_mapper import (
    MIN_BODY_BYTES,
    EventMapper,
    ZstdCompressor,
    load_json,
)
from cutbank.adapters.storage.event_log.stored_row import StoredRow, matches_keyed_hash
from cutbank.adapters.storage.sqlite import sqlite_schema
from cutbank.domain.compaction import Compaction, CompactionState
from cutbank.domain.event import Aggregate, Event, dump_state, load_state
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
            fields = {
                one.serialization_alias or name: getattr(value, name)
                for name, one in type(value).model_fields.items()
            }
            tree = {name: tree_of(one) for name, one in fields.items()}
            unknown = {name: tree_of(one) for name, one in (value.model_extra or {}).items()}
            return {"class": type(value).__name__} | tree | unknown
        case Ranges():
            return str(value)
        case bytes():
            return f"{len(value)} bytes {blake2b(value, digest_size=16).hexdigest()}"
        case str() if len(value) >= MIN_BODY_BYTES:
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


def rows_that_fail(check: Callable[[dict[str, Any]], bool]) -> list[str]:
    """The golden rows for which the check is wrong or raises; there are many rows."""
    wrong, checked = [], 0
    for path in ROWS:
        for golden in golden_rows(path):
            checked += 1
            try:
                is_right = check(golden)
            except Exception as error:  # noqa: BLE001 - whatever it is, its row is named
                wrong.append(f"{path.stem}: {golden['what']}: {error!r}")
            else:
                wrong += [] if is_right else [f"{path.stem}: {golden['what']}"]
    assert checked > 1_000
    return wrong


def test_what_was_stored_is_read_as_it_was_meant() -> None:
    def is_read(golden: dict[str, Any]) -> bool:
        mapper, row = mapper_of(golden), row_of(golden)
        secret = bytes.fromhex(golden["secret"])
        hashed = [(row.digest, mapper.read_plaintext(row)), *mapper.read_bodies(row)]
        return is_at_least(in_json(tree_of(read(golden))), golden["expected"]) and all(
            matches_keyed_hash(digest, content, secret) for digest, content in hashed
        )

    assert rows_that_fail(is_read) == []


def is_at_least(found: Any, expected: Any) -> bool:
    """Whether a tree is as expected, but for fields that are newer than the golden file."""
    if isinstance(expected, dict) and "class" in expected and isinstance(found, dict):
        return expected.keys() <= found.keys() and all(
            is_at_least(found[name], value) for name, value in expected.items()
        )
    if isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(map(is_at_least, found, expected))
    return bool(found == expected)


def test_what_was_stored_is_stored_the_same_today() -> None:
    assert rows_that_fail(is_stored_the_same) == []


def is_stored_the_same(golden: dict[str, Any]) -> bool:
    event, row = read(golden), row_of(golden)
    before = load_json(mapper_of(golden).read_plaintext(row))
    if before.get("class_version", 1) < type(event).class_version:
        return True  # a later version of the event is stored by now
    mapper = mapper_of(golden)
    if "state_base64" in golden:
        mapper.compressor = ZstdCompressor()

    today = mapper.to_stored_event(event)

    after = load_json(mapper.read_plaintext(today))
    times = [datetime.fromisoformat(one.pop("timestamp")) for one in (before, after)]
    assert times[0] == times[1]  # `Z` and `+00:00` are one
    if bodies := after.get("bodies"):  # what addresses are made of may change
        assert [body[:2] for body in bodies] == [body[:2] for body in before.pop("bodies")]
        del after["bodies"]
    contents = {mapper._decompress(body.content) for body in today.bodies}
    stored = {mapper._decompress(b64decode(one)) for one in golden["bodies"].values()}
    return (after, today.topic, contents) == (before, row.topic, stored)


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
        (
            type(event),
            load_json(mapper_of(golden).read_plaintext(row_of(golden))).get("class_version", 1),
        )
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


@pytest.fixture(params=DATABASES, ids=lambda path: path.stem)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Any]:
    """A database as an older version has left it, and what it served from it."""
    dump: Path = request.param
    path = tmp_path / "log.db"
    connection = sqlite3.connect(path)
    connection.executescript(dump.read_text(encoding="utf-8"))
    connection.close()
    return path, json.loads(dump.with_suffix(".views.json").read_text(encoding="utf-8"))


def test_a_database_of_any_version_serves_what_it_served(database: tuple[Path, Any]) -> None:
    path, served = database

    with cutbank.open(path) as store:
        check_served(store, served)


def test_a_database_of_any_version_is_sound_migrated_and_goes_on(
    database: tuple[Path, Any], tmp_path: Path
) -> None:
    path, _ = database
    cutbank.open(tmp_path / "new.db").close()

    with cutbank.open(path) as store:
        verdict = verify(store)

        assert verdict.violations == []
        assert verdict.calls > 0
        assert verdict.boundaries > 0
        for session in store.sessions():
            if not session.log.state.closed:
                before = session.position
                assert session.append(Block.user("and on it goes")).last > before
        assert verify(store).is_ok
    assert tables(path) == tables(tmp_path / "new.db")


def tables(path: Path) -> set[str]:
    """Each table, index and trigger as SQL.

    A table that was renamed stands in quotes, and a column that was added in no line of its own.
    """
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        plain = {" ".join(sql.replace('"', "").split()) for (sql,) in found}
        return {sql for sql in plain if "sqlite_sequence" not in sql}


LATER = frozenset({"requested", "futile"})
"""What a lineage's state says since the golden files after v3."""
STREAMS_TABLE = {
    ("story", None),
    ("story", "main"),
    ("story", "what if"),
    ("fork", None),
    ("fork", "main"),
    ("imported", "recorded"),
}
EVENTS = {
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


def test_a_golden_database_holds_all_that_can_happen_and_the_states_that_its_events_make(
    database: tuple[Path, Any], request: pytest.FixtureRequest
) -> None:
    path, _ = database
    is_old = request.node.callspec.id in {"v1", "v2", "v3"}
    # A field that is younger than the row is not in it, and means nothing there.
    young = LATER if is_old else frozenset()
    aggregate: Aggregate[Any]
    kinds: set[str] = set()

    with cutbank.open(path) as store:
        recorder = store.events.recorder
        streams = recorder.select_streams()
        for stream in streams:
            rows = recorder.select_events(stream.originator_id)
            kinds |= {row.topic.removeprefix("cutbank:") for row in rows}
            states: Any = SessionState if stream.lineage is None else CompactionState
            kind: Any = Session if stream.lineage is None else Compaction
            # A fork's and a based lineage's first state is inherited.
            aggregate = kind(
                stream.originator_id,
                version=rows[0].originator_version,
                state=load_state(states, json.loads(rows[0].carried)),
                subject="",
                clock=store.events.clock,
            )
            for row in rows[1:]:
                aggregate.evolve(store.events.mapper.to_domain_event(row))
                stored = json.loads(row.carried)
                made = dump_state(aggregate.state)
                assert {name: made[name] for name in made if name not in young} == stored
                aggregate.state = load_state(states, stored)
        fork = store.session("fork", create=False)
        rows = recorder.select_events(fork.log.id)
        opened = store.events.read_opening("default", "fork").fork

    assert {(stream.session, stream.lineage) for stream in streams} >= STREAMS_TABLE
    assert kinds >= EVENTS
    assert opened
    numbers = [row.originator_version for row in rows]
    assert numbers == list(range(opened.position + 1, opened.position + 1 + len(rows)))


def test_there_are_golden_files_of_every_version_and_all_its_kinds() -> None:
    marks = [dump.read_text(encoding="utf-8").splitlines()[:2] for dump in DATABASES]
    versions = {
        int(value)
        for lines in marks
        for name, value in (line.removeprefix("PRAGMA ").rstrip(";").split(" = ") for line in lines)
        if name == "user_version"
    }
    assert versions == set(range(1, sqlite_schema.SCHEMA_VERSION + 1))
    assert all(
        f"PRAGMA application_id = {sqlite_schema.LOG_APPLICATION_ID};" in lines for lines in marks
    )
    for name in {path.name.partition(".")[0] for path in FOLDER.iterdir()}:
        ends = (".compressed.jsonl", ".jsonl", ".sql", ".views.json")
        assert sorted(FOLDER.glob(f"{name}.*")) == [FOLDER / f"{name}{end}" for end in ends]
        plain, packed = (golden_rows(FOLDER / f"{name}{end}") for end in (ends[1], ends[0]))
        assert [row["what"] for row in plain] == [row["what"] for row in packed]
        assert any("state_base64" in row for row in packed)
        assert not any("state_base64" in row for row in plain)
