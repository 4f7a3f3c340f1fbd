"""A line is read, or its problem is named; no line stops the next one from being read."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.adapters.transcripts.formats.json_lines import SourceLine, parse_line
from cutbank.adapters.transcripts.formats.source import TranscriptSource


def read(tmp_path: Path, raw: bytes, longest: int = 1_000) -> list[SourceLine]:
    path = tmp_path / "some.jsonl"
    path.write_bytes(raw)
    return list(TranscriptSource(path, longest=longest).read_lines())


def test_lines_are_numbered_say_where_they_end_and_blank_ones_are_no_entries(
    tmp_path: Path,
) -> None:
    for raw, expected in (
        (b'{"a":1}\n[2]\n3', [(1, 8, {"a": 1}), (2, 12, [2]), (3, 13, 3)]),
        (b"\n  \t\r\n1\r\n\n2\n\n", [(3, 9, 1), (5, 12, 2)]),
        (b"\xef\xbb\xbf[1]\n", [(1, 7, [1])]),
    ):
        assert [(line.number, line.end, line.value) for line in read(tmp_path, raw)] == expected


def test_a_line_that_is_no_json_is_a_problem(tmp_path: Path) -> None:
    for raw, problem in (
        (b"{nonsense}", "not JSON"),
        (b'{"a":"\xff\xfe"}', "not UTF-8 text"),
        (b"\x89PNG\r\x1a", "not UTF-8 text"),
        (b'{"a":"\0"}', "holds NUL bytes"),
        (b"\0\0\0\0", "holds NUL bytes"),
        (b"[" * 100_000, "nested too deeply"),
        (b"9" * 5_000, "not JSON"),
    ):
        wrong, right = read(tmp_path, raw + b"\n[1]\n", longest=1_000_000)

        assert str(wrong.problem).startswith(problem), raw[:20]
        assert right.value == [1]


def test_a_truncated_last_line_ends_where_it_begins(tmp_path: Path) -> None:
    whole, truncated = read(tmp_path, b'[1]\n{"a": "b')

    assert whole.end == truncated.end == 4
    assert truncated.problem
    assert truncated.problem.startswith("truncated")


def test_a_line_that_is_too_long_is_skipped_to_its_end(tmp_path: Path) -> None:
    fits = b'"' + b"x" * 98 + b'"'
    found = read(tmp_path, fits + b"\n" + b'"' + b"x" * 3_000_000 + b'"\n[2]\n', longest=100)

    assert [line.problem for line in found] == [None, "longer than 100 bytes", None]
    assert [line.number for line in found] == [1, 2, 3]
    assert found[2].value == [2]


def test_what_the_fast_parser_refuses_is_read_by_the_slow_one() -> None:
    assert math.isnan(parse_line(b'{"a": NaN}').value["a"])
    assert parse_line(b'{"a": 12345678901234567890123}').value["a"] == 12345678901234567890123
    assert parse_line(b'["\\ud83d lone"]').value == ["\ufffd lone"]
    assert parse_line(b'["\\ud83d\\ude00 \\udc00"]').value == ["\U0001f600 \ufffd"]


def test_a_part_is_written_as_it_was_read() -> None:
    accent = b'{"a":1.5,"b":"\xc3\xa9"}'
    for raw in (accent, b"[NaN,-Infinity]", b"[-98765432109876543210]", b"[" * 300 + b"]" * 300):
        line = parse_line(raw)

        assert line.to_json(line.value) == raw.decode()


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_named(raw: bytes) -> None:
    body = raw.strip()
    if not body:
        return

    line = parse_line(body)

    assert line.problem or line.to_json(line.value)


@given(st.lists(st.binary(max_size=30)), st.integers(min_value=1, max_value=40))
def test_every_line_that_is_not_blank_is_found_once(
    tmp_path_factory: pytest.TempPathFactory, raws: list[bytes], longest: int
) -> None:
    raw = b"\n".join(raws)
    path = tmp_path_factory.mktemp("any") / "any.jsonl"
    path.write_bytes(raw)

    found = list(TranscriptSource(path, longest=longest).read_lines())

    written = raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    full = [len(one) for one in raw.split(b"\n")]
    numbers = [
        number
        for number, (one, size) in enumerate(zip(written, full, strict=True), 1)
        if one.strip() or size > longest
    ]
    assert [line.number for line in found] == numbers
    assert all(line.end <= len(raw) for line in found)
