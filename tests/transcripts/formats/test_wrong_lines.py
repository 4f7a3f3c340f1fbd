"""Lines go out as they came in, whatever is wrong with them and whatever their order."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts import SAMPLES, import_file
from wrong_types import mutants

import cutbank
from cutbank import export, verify
from cutbank.adapters.transcripts.formats.catalog import FORMATS
from cutbank.adapters.transcripts.formats.json_lines import parse_line

LINE_FORMATS = [name for name, one in FORMATS.items() if one.begin_reading]
FILES = sorted(path for name in LINE_FORMATS for path in (SAMPLES / name).rglob("*.jsonl"))


@cache
def entries_of(path: Path) -> list[Any]:
    lines = (parse_line(line) for line in path.read_bytes().splitlines()[:36])
    return [line.value for line in lines if line.problem is None]


@cache
def wrong_copies(path: Path, number: int) -> list[Any]:
    return list(mutants(entries_of(path)[number]))


def check_out_and_in(folder: Path, raw: bytes) -> None:
    path, out = folder / "in.jsonl", folder / "out.jsonl"
    path.write_bytes(raw)
    with cutbank.open(":memory:") as store:
        report = import_file(store, path)
        if report.format is None or not report.sessions:
            return  # nothing is left by which the format is known, or nothing was said
        assert report.complete
        assert import_file(store, path).added == 0
        assert verify(store).violations == []
        home = store.session(report.sessions[0], create=False)
        assert export(home, report.format, out).lost.keys() <= {"branches"}
        assert out.read_bytes() == raw
        if FORMATS[report.format].write:
            export(home, report.format, folder / "view.jsonl", view=True)


@settings(max_examples=40)
@given(st.data(), st.sampled_from(FILES), st.integers(0, 40))
def test_lines_in_any_order_go_out_as_they_came(data: st.DataObject, path: Path, cut: int) -> None:
    entries = entries_of(path)
    order = data.draw(st.lists(st.integers(0, len(entries) - 1), max_size=12))
    told = [entries[0]]
    for number in order if data.draw(st.booleans()) else range(1, len(entries)):
        is_wrong = data.draw(st.integers(0, 5)) == 0
        told.append(
            data.draw(st.sampled_from(wrong_copies(path, number))) if is_wrong else entries[number]
        )

    with TemporaryDirectory() as folder:
        raw = b"".join(json.dumps(entry).encode() + b"\n" for entry in told)
        check_out_and_in(Path(folder), raw[: -cut or None])
