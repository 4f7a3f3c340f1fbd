"""Whatever is wrong with a rollout of Codex, it is said, and the rest is read."""

import copy
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from claude_code_talk import Reading
from codex_talk import THREAD, Rollout, message, read_at, sealed
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts import SAMPLES, import_file

import cutbank
from cutbank import SessionStore
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.transcripts.formats.codex import FORMAT
from cutbank.adapters.transcripts.formats.source import Source
from cutbank.adapters.transcripts.formats.steps import (
    Append,
    Aside,
    Begin,
    Call,
    Compacted,
    EntryRead,
    Problem,
    Rewind,
    Skipped,
    Unknown,
)

SAMPLE = SAMPLES / "codex" / f"rollout-2026-02-03T10-00-00-{THREAD.replace('b', 'a')}.jsonl"
LINES = [json.loads(line) for line in SAMPLE.read_bytes().splitlines()]
WRONG: list[Any] = [None, True, -1, 10**30, 1.5, "", "x", [], [3], {"type": []}, [{"type": "text"}]]


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rollout.jsonl"


def spelt(lines: list[Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a value that something else could stand."""
    yield at
    inner = value.items() if isinstance(value, dict) else []
    for name, part in enumerate(value) if isinstance(value, list) else inner:
        yield from places(part, (*at, name))


def changed(value: Any, at: tuple[Any, ...], wrong: Any) -> Any:
    if not at:
        return wrong
    whole = copy.deepcopy(value)
    owner = whole
    for name in at[:-1]:
        owner = owner[name]
    owner[at[-1]] = wrong
    return whole


def is_accounted_for(reading: Reading, entries: int) -> None:
    """Every entry ended once, and says why where it was not imported."""
    assert len(reading.outcomes) == entries
    said: list[type] = []
    for step in reading.steps:
        if isinstance(step, EntryRead):
            why = {"skipped": Skipped, "unknown": Unknown, "error": Problem}
            assert step.outcome == "imported" or why[step.outcome] in said
            said = []
        else:
            said.append(type(step))
    offsets = [step.offset for step in reading.of(EntryRead)]
    assert all(one <= two for one, two in pairwise(offsets))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(LINES)))
def test_a_wrong_type_in_any_field_of_any_line_spoils_that_line_at_most(
    number: int, tmp_path: Path
) -> None:
    path = tmp_path / "rollout.jsonl"
    before, line = LINES[:number][-3:], LINES[number]
    after = {"timestamp": "t", "type": "response_item", "payload": message("user", "the rest")}
    for at in places(line):
        for wrong in WRONG:
            lines = [*before, changed(line, at, wrong), after]
            reading = read_at(path, spelt(lines))

            is_accounted_for(reading, len(lines))
            assert reading.said[-1] == ("user", "the rest")


def needed(path: Path) -> list[Any]:
    """The lines of a rollout, events aside."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [line for line in lines if not (isinstance(line, dict) and is_event(line))]


def is_event(line: dict[str, Any]) -> bool:
    match line:
        case {"type": "event_msg", "payload": {"type": str(kind)}}:
            return kind not in ("thread_rolled_back", "thread_name_updated")
        case _:
            return line.get("type") == "event_msg"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(range(len(LINES))), max_size=12), st.data())
def test_lines_in_any_order_with_anything_in_them_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("rollouts")
    lines = [LINES[0]]
    for number in order:
        at = data.draw(st.sampled_from(list(places(LINES[number]))))
        wrong = data.draw(st.sampled_from([*WRONG, *[LINES[number]] * 9]))
        whole = LINES[number] if wrong is LINES[number] else changed(LINES[number], at, wrong)
        lines.append(whole)
    (folder / "in.jsonl").write_bytes(spelt(lines))

    with cutbank.open(folder / "store.db") as store:
        report = import_file(store, folder / "in.jsonl")
        again = import_file(store, folder / "in.jsonl")
        assert report.complete
        assert sum(report.ended.values()) == len(lines)
        assert again.added == 0
        assert verify(store).ok
        for key in report.sessions:
            session = store.session(key, create=False)
            export(session, "codex", folder / "out.jsonl")
            export(session, "codex", folder / "view.jsonl", view=True)
            assert needed(folder / "out.jsonl") == needed(folder / "in.jsonl")


@pytest.mark.parametrize("cut", [2, 40, 300, 2_000, 9_000])
def test_a_rollout_that_ends_inside_a_line_is_read_up_to_there(path: Path, cut: int) -> None:
    raw = SAMPLE.read_bytes()
    reading = read_at(path, raw[:-cut])

    whole = raw[:-cut].count(b"\n")
    assert len(reading.outcomes) == whole + 1
    assert reading.reasons[-1] == "truncated: the file ends inside this line"


def test_lines_that_are_no_items_are_problems_with_their_number(path: Path) -> None:
    told = Rollout()
    raw = told.raw() + b'nonsense\n[1]\n"x"\n{}\n{"type":3,"payload":{}}\n\0\n'

    reading = read_at(path, raw)

    assert [step.line for step in reading.of(Problem)] == [2, 3, 4, 5, 6, 7]
    assert reading.outcomes == ["imported", *["error"] * 6]


def test_deep_nesting_is_a_problem_or_is_read(path: Path) -> None:
    told = Rollout()
    deep: Any = "bottom"
    for _ in range(300):
        deep = [deep]
    told.calls("c", name="ls", more=deep)
    told.add("world_state", deep)
    raw = told.raw() + b'{"type":"world_state","payload":' + b"[" * 100_000 + b"\n"

    reading = read_at(path, raw)

    assert reading.outcomes == ["imported", "imported", "imported", "error"]


def test_unknown_types_are_kept_raw_and_counted(path: Path) -> None:
    told = Rollout()
    told.add("tide_table", {"high": 12})
    told.item("knot_call", rope=3)
    told.event("tide_turned")
    told.user({"type": "input_smell", "smell": "tar"})

    reading = read_at(path, told)

    assert [step.type for step in reading.of(Unknown)] == [
        "tide_table",
        "response_item/knot_call",
        "event_msg/tide_turned",
        "response_item/message/input_smell",
    ]
    assert reading.outcomes[1:] == ["unknown"] * 4


def test_a_history_that_begins_in_another_rollout_is_a_problem(path: Path) -> None:
    told = Rollout(history_base={"thread_id": "x", "end_ordinal_exclusive": 3})

    reading = read_at(path, told)

    assert reading.reasons == [
        "history_base: what came before is in another rollout, and is not read"
    ]


def test_large_numbers_and_halves_of_characters_are_written_as_they_were_read(
    store: SessionStore, tmp_path: Path
) -> None:
    told = Rollout()
    raw = told.raw() + (
        b'{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user",'
        b'"content":[{"type":"input_text","text":"\\ud83d half","n":123456789012345678901234567890'
        b',"x":NaN}]}}\n'
    )
    (tmp_path / "in.jsonl").write_bytes(raw)
    import_file(store, tmp_path / "in.jsonl")

    export(store.session(THREAD, create=False), "codex", tmp_path / "out.jsonl")

    line = next(one for one in (tmp_path / "out.jsonl").read_text().splitlines() if "half" in one)
    part = json.loads(line)["payload"]["content"][0]
    assert part["n"] == 123456789012345678901234567890
    assert part["x"] != part["x"]
    assert part["text"] == "\ufffd half"


def test_an_output_that_answers_no_call_is_written_back_all_the_same(
    store: SessionStore, tmp_path: Path
) -> None:
    told = Rollout()
    told.returns("nobody's", "text")
    told.calls("c")
    told.calls("c")
    told.returns("c")
    (tmp_path / "in.jsonl").write_bytes(told.raw())

    report = import_file(store, tmp_path / "in.jsonl")
    export(store.session(THREAD, create=False), "codex", tmp_path / "out.jsonl")

    assert len(report.errors) == 2
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert written == told.lines


def keys_of(reading: Reading) -> set[str]:
    kinds = (Append, Call, Compacted, Rewind)
    return {step.key for step in reading.steps if isinstance(step, kinds)}


def test_a_rollout_that_grows_is_read_on_with_the_same_keys(path: Path) -> None:
    whole = read_at(path, SAMPLE.read_bytes())
    lines = SAMPLE.read_bytes().splitlines(keepends=True)

    for count in range(1, len(lines), 3):
        part = read_at(path, b"".join(lines[:count]))
        assert keys_of(part) <= keys_of(whole)
        assert [step.key for step in part.of(Begin)][:1] == [whole.of(Begin)[0].key]


def test_a_reader_that_was_at_the_end_goes_on_with_the_lines_that_follow(path: Path) -> None:
    raw = SAMPLE.read_bytes()
    path.write_bytes(raw)
    source = Source(path)
    reader = FORMAT.begin
    assert reader
    following = reader(source)

    steps = []
    for line in source.lines():
        steps += [*following.read(line)]
        following.close()

    assert Reading(steps).steps == read_at(path, raw).steps


def test_importing_a_rollout_as_it_grows_adds_each_block_once(
    store: SessionStore, path: Path
) -> None:
    lines = SAMPLE.read_bytes().splitlines(keepends=True)
    added = 0
    for count in (1, 20, 58, 59, 60, 61, 62, len(lines)):
        path.write_bytes(b"".join(lines[:count]))
        added += import_file(store, path).added

    assert added == import_file(store, path, namespace="at once").added
    grown, once = (
        store.session(THREAD.replace("b", "a"), namespace=name, create=False)
        for name in ("default", "at once")
    )
    assert [e.text for e in grown.view().entries] == [e.text for e in once.view().entries]


def test_what_an_mcp_server_answered_is_kept_where_no_output_says_it(path: Path) -> None:
    def answer(text: str) -> dict[str, Any]:
        return {"result": {"Ok": {"content": [{"type": "text", "text": text}]}}}

    told = Rollout()
    told.user("look")
    told.calls("c1")
    told.event("mcp_tool_call_end", call_id="c1", **answer('said "again"'))
    told.returns("c1", json.dumps([{"type": "text", "text": 'said "again"'}]))
    told.calls("c2")
    told.event("mcp_tool_call_end", call_id="c2", **answer("all of it"))
    told.returns("c2", "all [...]")
    told.event("mcp_tool_call_end", call_id="c3", **answer("from within a script"))
    told.calls("c4")
    told.event("mcp_tool_call_end", call_id="c4", result={"Err": "timed out"})
    told.event("task_complete", turn_id="1", last_agent_message=None)
    told.event("task_complete", turn_id="2", error={"message": "the server is overloaded"})

    reading = read_at(path, told)

    kept = [step.raw for step in reading.of(Aside) if step.type != "session_meta"]
    found = ["again", "all of it", "within a script", "timed out", "overloaded"]
    assert [[word in raw for raw in kept].count(True) for word in found] == [0, 1, 1, 1, 1]
    assert len(kept) == 4


def test_a_compaction_that_cannot_be_read_leaves_the_context_as_it_was(path: Path) -> None:
    told = Rollout()
    told.user("first")
    told.add("compacted", {"message": 3})
    told.add("compacted", {"replacement_history": ["x"]})
    told.compacts({"type": "message", "role": "user", "content": [{"type": "input_smell"}]})
    told.compacts(message("user", "first"), sealed())

    reading = read_at(path, told)

    assert reading.outcomes == [*["imported"] * 2, "error", "error", "unknown", "imported"]
    assert [step.kept for step in reading.of(Compacted)] == [("line:2",)]
