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
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, Literal, get_origin
from uuid import UUID

import pytest
from eventsourcing.persistence import JSONTranscoder
from files_at_rest import files, header_says
from make_golden import tree_of

import cutbank
import cutbank.domain
from cutbank import Block, verify
from cutbank.adapters.storage.databases import sqlite_schema
from cutbank.adapters.storage.event_log.event_mapper import (
    EventMapper,
    ZstdCompressor,
    decompress_any,
    load_json,
    matches_keyed_hash,
)
from cutbank.adapters.storage.event_log.log_tables import StoredRow
from cutbank.domain.event import Event, StoredValue

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
        # As it comes out of a file: halves that JSON joins are joined.
        tree = json.loads(json.dumps(tree_of(read(golden))))
        return is_at_least(tree, golden["expected"]) and all(
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
    contents = {decompress_any(body.content) for body in today.bodies}
    stored = {decompress_any(b64decode(one)) for one in golden["bodies"].values()}
    return (after, today.topic, contents) == (before, row.topic, stored)


NOWHERE_STORED = ("cutbank.domain.backtest_", "cutbank.domain.fidelity.")
"""What a backtest measured is kept in its cache alone, under a fingerprint of the code that did."""


def classes_of_the_domain() -> Iterator[type[StoredValue]]:
    """Every class that is stored."""
    for module in walk_packages(cutbank.domain.__path__, "cutbank.domain."):
        if module.name.startswith(NOWHERE_STORED):
            continue
        for thing in vars(import_module(module.name)).values():
            if (
                isinstance(thing, type)
                and issubclass(thing, StoredValue)
                and thing.__module__ == module.name
                and thing not in {StoredValue, Event}
            ):
                yield thing


def records_in(value: Any) -> Iterator[StoredValue]:
    match value:
        case StoredValue():
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
    stored: set[Any] = set()
    with_defaults: set[Any] = set()
    versions: set[Any] = set()
    for golden in rows:
        event, mapper = read(golden), mapper_of(golden)
        version = load_json(mapper.read_plaintext(row_of(golden))).get("class_version", 1)
        versions.add((type(event), version))
        required = {name for name, field in type(event).model_fields.items() if field.is_required()}
        if event.model_fields_set - ENVELOPE == required - ENVELOPE:
            with_defaults.add(type(event))
        stored |= {
            (type(record), name) for record in records_in(event) for name in record.model_fields_set
        }

    classes = {kind for kind in classes_of_the_domain() if kind.model_fields}
    kinds = {kind for kind in classes if issubclass(kind, Event)}
    fields = {
        (kind, name)
        for kind in classes
        if kind in kinds or not kind.__subclasses__()
        for name, field in kind.model_fields.items()
        if get_origin(field.annotation) is not Literal or field.is_required()
    }
    assert len(kinds) > 20
    assert fields - stored == set()
    assert kinds - with_defaults == set()
    known = {(kind, version) for kind in kinds for version in range(1, kind.class_version + 1)}
    assert known - versions == set()


@pytest.fixture(params=DATABASES, ids=lambda path: path.stem)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Any]:
    """A database as an older version has left it, and what it served from it."""
    dump: Path = request.param
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(dump.read_text(encoding="utf-8"))
        if dump.stem in {"v1", "v2"}:  # which know no rest, nor their file
            connection.execute("PRAGMA journal_mode = WAL")
    return path, json.loads(dump.with_suffix(".views.json").read_text(encoding="utf-8"))


def test_a_database_of_any_version_serves_what_it_served_and_goes_on(
    database: tuple[Path, Any], tmp_path: Path
) -> None:
    path, served = database
    cutbank.open(tmp_path / "new.db").close()

    with cutbank.open(path) as store:
        for then in served:
            view = store.session(then["session"], create=False).view(
                at=then["at"], lineage=then["lineage"], lineage_version=then["lineage_version"]
            )
            assert [[entry.position, entry.text[:200]] for entry in view.entries] == then["entries"]
            assert (view.summary.text if view.summary else None) == then["summary"]
            assert view.system_prompt == then["system"]
            assert view.fingerprint == then["fingerprint"]
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
    assert (header_says(path), files(tmp_path)) == ("at rest", ["log.db", "new.db"])
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT inode FROM home").fetchone() == (f"{path.stat().st_ino}",)


def tables(path: Path) -> set[str]:
    """Each table, index and trigger as SQL.

    A table that was renamed stands in quotes, and a column that was added in no line of its own.
    """
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        plain = {" ".join(sql.replace('"', "").split()) for (sql,) in found}
        return {sql for sql in plain if "sqlite_sequence" not in sql}


def test_there_are_golden_files_of_every_version_and_all_its_kinds() -> None:
    marks = [dump.read_text(encoding="utf-8").splitlines()[:2] for dump in DATABASES]
    versions = {
        int(line.removeprefix("PRAGMA user_version = ").rstrip(";"))
        for lines in marks
        for line in lines
        if "user_version" in line
    }
    assert versions == set(range(1, sqlite_schema.SCHEMA_VERSION + 1))
    application = f"PRAGMA application_id = {sqlite_schema.LOG_APPLICATION_ID};"
    assert all(application in lines for lines in marks)
    for name in {path.name.partition(".")[0] for path in FOLDER.iterdir()}:
        ends = (".compressed.jsonl", ".jsonl", ".sql", ".views.json")
        assert sorted(FOLDER.glob(f"{name}.*")) == [FOLDER / f"{name}{end}" for end in ends]
        plain, packed = (golden_rows(FOLDER / f"{name}{end}") for end in (ends[1], ends[0]))
        assert [row["what"] for row in plain] == [row["what"] for row in packed]
        assert any("state_base64" in row for row in packed)
