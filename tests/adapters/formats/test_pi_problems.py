"""Whatever a session of pi holds, it is read to its end, and what was read goes out as it came."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from essences.pi import essence
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts import import_file

import cutbank
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.transcripts.formats.pi import FORMAT
from cutbank.adapters.transcripts.formats.source import Source
from cutbank.adapters.transcripts.formats.steps import Begin, EntryRead

OTHERS = [None, 7, True, "", "\0", [], [[1]], {}, {"type": "text"}, "0000000c"]


@cache
def every_place() -> list[tuple[list[Any], int, tuple[Any, ...]]]:
    """Each value in the samples: its file's entries, the number of its entry, and where it is."""
    found: list[tuple[list[Any], int, tuple[Any, ...]]] = []
    samples = Path(__file__).parents[2] / "samples"
    for path in sorted([*samples.glob("pi/*.jsonl"), *samples.glob("oh-my-pi/*.jsonl")]):
        entries = [json.loads(line) for line in path.read_bytes().split(b"\n")[:36] if line]
        for number, entry in enumerate(entries):
            found += [(entries, number, place) for place in places(entry)]
    return found


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*at, name))


def replaced(value: Any, at: tuple[Any, ...], other: Any) -> Any:
    if not at:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[at[0]] = replaced(value[at[0]], at[1:], other)
    return copy


def lines(entries: list[Any]) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


@pytest.mark.slow
@pytest.mark.parametrize("other", [None, 7, "\0", [], {}])
def test_whatever_is_of_another_type_the_rest_is_read(tmp_path: Path, other: Any) -> None:
    path = tmp_path / "a.jsonl"
    places = every_place()
    for entries, number, place in places:
        changed = [*entries]
        changed[number] = replaced(entries[number], place, other)
        path.write_bytes(lines(changed))

        steps = list(FORMAT.read(Source(path)))

        assert sum(isinstance(step, EntryRead) for step in steps) == len(changed)
        assert isinstance(steps[0], Begin)
    assert len(places) > 500


@settings(max_examples=60)
@given(st.data())
def test_what_is_wrong_goes_out_as_it_came(data: st.DataObject) -> None:
    entries, number, place = data.draw(st.sampled_from(every_place()))
    changed = [*entries]
    if entries[number]["type"] not in ("session", "title"):
        changed[number] = replaced(entries[number], place, data.draw(st.sampled_from(OTHERS)))
    cut = data.draw(st.integers(0, 40))

    with TemporaryDirectory() as folder, cutbank.open(f"{folder}/a.db") as store:
        path = Path(folder, "a.jsonl")
        path.write_bytes(lines(changed)[: -cut or None])
        report = import_file(store, path)
        again = import_file(store, path)
        if report.format is None:
            return  # nothing is left of what tells the format
        sessions = [store.session(key, create=False) for key in report.sessions]
        (home,) = [one for one in sessions if one.forked_from is None]
        assert export(home, report.format, Path(folder, "b.jsonl")).lost == {}

        assert again.added == 0
        assert verify(store).violations == []
        came, went = (_entries(Path(folder, name)) for name in ("a.jsonl", "b.jsonl"))
        if _title_of(came) is not None:
            # It is written over with the newest title, whatever it said before.
            assert _title_of(went) == (home.title or _title_of(came))
        assert [one for one in went if not _is_slot(one)] == [o for o in came if not _is_slot(o)]


def _entries(path: Path) -> list[Any]:
    (entries,) = essence(path).values()
    return list(entries)


def _is_slot(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("type") == "title"


def _title_of(entries: list[Any]) -> Any:
    return next((entry.get("title") for entry in entries if _is_slot(entry)), None)


@pytest.mark.parametrize("count", [1, 2, 7, 20])
def test_bytes_that_were_cut_anywhere_lose_no_whole_line(tmp_path: Path, count: int) -> None:
    raw = Path(__file__).parents[2].joinpath("samples/pi/tree.jsonl").read_bytes()
    path = tmp_path / "a.jsonl"
    whole = 0
    for end in range(400, len(raw), 97 * count):
        path.write_bytes(raw[:end])
        steps = list(FORMAT.read(Source(path)))
        read = sum(isinstance(step, EntryRead) for step in steps)
        assert read >= raw[:end].count(b"\n") >= whole
        whole = raw[:end].count(b"\n")
