"""Every text of a transcript is in the database, or in a part that the docs say is not kept."""

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from transcripts import import_file, name_of, real, samples

from cutbank import SessionStore
from cutbank.adapters.transcripts.formats.catalog import recognise
from cutbank.adapters.transcripts.formats.source import Source

SHORTEST = 40
"""Characters of the shortest text that is looked for."""
PAGE = Path(__file__).parents[3] / "docs" / "importing.md"
ROW = re.compile(r"^\| `([^`]+)` \| (`.+?`) \|", re.MULTILINE)
MARKS = re.compile(r"^(# aider chat started at |#### ?|> ?)|^data:[^,]*;base64,")
"""What stands before a text in its file: Markdown's marks, or a picture's type."""
TYPES = ("type", "kind")
"""Fields that tell what an object is."""
EVERY = [pytest.param(path, id=name_of(path)) for path in [*samples(), *real()]]


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"


def not_kept() -> dict[str, list[str]]:
    """The parts of each format's transcripts that the docs name."""
    parts: dict[str, list[str]] = {}
    for name, named in ROW.findall(PAGE.read_text("utf-8")):
        parts.setdefault(name, []).extend(re.findall(r"`([^`]+)`", named))
    return parts


def texts(value: Any, left_out: Collection[Any]) -> Iterator[str]:
    """All texts in a value but those in a part that is left out: a field, or a type of entry."""
    left = [value]
    while left:
        match left.pop():
            case str() as text:
                yield text
            case dict() as item:
                if not any(item.get(field) in left_out for field in TYPES):
                    left += [one for name, one in item.items() if name not in left_out]
            case list() as items:
                left += items
            case _:
                pass


def told(path: Path, left_out: Collection[str]) -> Iterator[str]:
    """The texts of a transcript; lines where it is no JSON."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    for file in files:
        if not file.is_file():
            continue
        raw = file.read_bytes().decode(errors="backslashreplace")
        for part in [raw] if _json(raw) is not None else raw.split("\n"):
            value = _json(part)
            yield from texts(value if isinstance(value, dict | list) else part.strip(), left_out)


def stored(store: SessionStore) -> set[str]:
    """All texts of all events, those inside of JSON text too."""
    found: set[str] = set()
    events = store.events
    position = 1
    while rows := events.recorder.select_notifications(position, limit=500):
        for row in rows:
            left: list[Any] = [events.mapper.to_domain_event(row).model_dump(mode="json")]
            while left:
                for text in texts(left.pop(), ()):
                    if text not in found:
                        found.add(text)
                        left += [inner] if isinstance(inner := _json(text), dict | list) else []
        position = rows[-1].id + 1
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@pytest.mark.slow
@pytest.mark.parametrize("path", EVERY)
def test_every_text_is_in_the_database_or_in_a_part_that_the_docs_name(
    store: SessionStore, path: Path
) -> None:
    found = recognise(Source(path))
    assert found
    import_file(store, path)

    held = stored(store)
    all_of_it = "\0".join(text for text in held if len(text) >= SHORTEST)
    lost = [
        text
        for one in told(path, not_kept().get(found.name, []))
        if len(text := MARKS.sub("", one).strip()) >= SHORTEST
        if text not in held and text not in all_of_it
    ]

    assert lost == []
