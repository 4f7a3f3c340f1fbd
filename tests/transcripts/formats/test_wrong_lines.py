"""What Codex and pi wrote goes out as it came in, whatever is wrong with it."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from essences import pi as essence
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts import SAMPLES, import_file
from wrong_types import mutants

import cutbank
from cutbank import Ranges, export, verify
from cutbank.adapters.transcripts.formats.summary_mark import SUMMARY_MARK, find_marked_summary
from cutbank.projections.rendering.summary_message import wrap_summary

CODEX = sorted((SAMPLES / "codex").iterdir())[1]
PI = [*(SAMPLES / "pi").iterdir(), *(SAMPLES / "oh-my-pi").iterdir()]


@cache
def entries_of(path: Path) -> list[Any]:
    lines = path.read_bytes().splitlines()
    return [json.loads(line) for line in lines[: None if path == CODEX else 36]]  # no JSON follows


@cache
def wrong_copies(path: Path, number: int) -> list[Any]:
    return list(mutants(entries_of(path)[number]))


def lines(entries: list[Any]) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def out_and_in(folder: Path, raw: bytes) -> Path | None:
    """Import the bytes and export the session; None where no format knows them."""
    path = folder / "in.jsonl"
    path.write_bytes(raw)
    with cutbank.open(":memory:") as store:
        report = import_file(store, path)
        if report.format is None:
            return None
        assert report.complete
        assert import_file(store, path).added == 0
        assert verify(store).violations == []
        sessions = [store.session(key, create=False) for key in report.sessions]
        (home,) = [one for one in sessions if one.info.forked_from is None]
        assert export(home, report.format, folder / "out.jsonl").lost == {}
        export(home, report.format, folder / "view.jsonl", view=True)
        (folder / "title").write_text(home.info.title or "")
    return folder / "out.jsonl"


@settings(max_examples=20)
@given(st.lists(st.integers(0, len(entries_of(CODEX)) - 1), max_size=12), st.data())
def test_lines_of_a_rollout_in_any_order_come_back_as_they_were(
    order: list[int], data: st.DataObject
) -> None:
    told = [entries_of(CODEX)[0]]
    for number in order:
        is_wrong = data.draw(st.integers(0, 3)) == 0
        wrong = wrong_copies(CODEX, number) if is_wrong else [entries_of(CODEX)[number]]
        told.append(data.draw(st.sampled_from(wrong)))

    with TemporaryDirectory() as folder:
        out = out_and_in(Path(folder), lines(told))

        assert out
        came = [json.loads(line) for line in out.read_bytes().splitlines()]
        assert [one for one in came if not is_event(one)] == [o for o in told if not is_event(o)]


def is_event(line: Any) -> bool:
    """Whether a line only shows the person what other lines say as well."""
    match line:
        case {"type": "event_msg", "payload": {"type": str(kind)}}:
            return kind not in ("thread_rolled_back", "thread_name_updated")
        case {"type": "event_msg"}:
            return True
        case _:
            return False


@settings(max_examples=25)
@given(st.data(), st.sampled_from(PI), st.integers(0, 40))
def test_entries_of_pi_come_back_as_they_were(data: st.DataObject, path: Path, cut: int) -> None:
    told = entries_of(path)
    number = data.draw(st.integers(0, len(told) - 1))
    if told[number]["type"] not in ("session", "title"):
        wrong = data.draw(st.sampled_from(wrong_copies(path, number)))
        told = [*told[:number], wrong, *told[number + 1 :]]

    with TemporaryDirectory() as folder:
        out = out_and_in(Path(folder), lines(told)[: -cut or None])

        if out is None:
            return  # nothing is left by which the format is known
        (came,), (went,) = (essence(one) for one in (out.with_name("in.jsonl"), out))
        if slots := [one for one in came if is_title(one)]:
            # It is written over with the newest title, whatever it said before.
            newest = out.with_name("title").read_text() or slots[0].get("title")
            assert next(one for one in went if is_title(one)).get("title") == newest
        assert [one for one in went if not is_title(one)] == [o for o in came if not is_title(o)]


def is_title(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("type") == "title"


def test_a_marked_summary_is_found_at_any_depth() -> None:
    text = wrap_summary("The river is brown.", Ranges())
    item: Any = {**SUMMARY_MARK, "text": text}
    unmarked: Any = {"text": text}
    for _ in range(50_000):
        item, unmarked = [item], [unmarked]

    assert find_marked_summary(item, text)
    assert find_marked_summary(unmarked, text) is None
