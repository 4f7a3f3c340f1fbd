"""Whatever is wrong with a transcript of Claude Code, it is said, and the rest is read."""

import copy
import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from claude_code_talk import SESSION, Entry, Reading, Talk, Tell, reading_of, text, tool_use
from hypothesis import given
from hypothesis import strategies as st

from cutbank.adapters.transcripts.formats.steps import (
    Append,
    Begin,
    Call,
    Compacted,
    EntryRead,
    Problem,
    Rewind,
    Skipped,
    Unknown,
)
from cutbank.domain.blocks import ToolCall, ToolResult

# What is wrong with a line


def test_a_repeated_entry_is_skipped_and_a_changed_one_is_a_problem(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    talk.entries.append(talk.entries[0])
    talk.entries.append(talk.entries[0] | {"message": {"role": "user", "content": "stop"}})

    reading = tell(talk)

    assert reading.said == [("user", "go")]
    assert reading.outcomes == ["imported", "skipped", "error"]
    assert reading.of(Skipped) == [Skipped("user", "repeated id")]


def test_an_entry_whose_first_try_was_malformed_is_read(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    talk.entries.insert(0, talk.entries[0] | {"message": "error"})

    assert tell(talk).outcomes == ["error", "imported"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"message": "error"}, "message: expected an object, got text"),
        ({"message": {"role": "user", "contenst": []}}, "message.content: expected a list, but"),
        ({"message": {"role": "user", "content": 1}}, "message.content: expected a list, got a"),
        ({"message": {"role": "user", "content": ["wow"]}}, "message.content[0]: expected an obj"),
        ({"message": {"role": "assistant", "content": "a"}}, "message.role: expected user, got as"),
        ({"type": None}, "type: expected text, got null"),
        ({"type": "system"}, "subtype: expected text, but it is missing"),
        ({"uuid": 1}, "uuid: expected text, got a whole number"),
        ({"parentUuid": []}, "parentUuid: expected text, got a list"),
        ({"isSidechain": "no"}, "isSidechain: expected true or false, got text"),
        ({"timestamp": 1.5}, "timestamp: expected text, got a fraction"),
    ],
)
def test_a_malformed_entry_says_what_was_expected_and_is_kept(
    tell: Tell, change: Entry, reason: str
) -> None:
    talk = Talk()
    talk.user("go")
    talk.entries[0] |= change
    talk.user("on")

    reading = tell(talk)

    assert reading.outcomes == ["error", "imported"]
    (problem,) = reading.of(Problem)
    assert problem.line == 1
    assert problem.reason.startswith(reason)
    assert problem.raw
    assert problem.key


def test_lines_that_are_no_entries_are_problems(tell: Tell) -> None:
    reading = tell(b'"massive error"\n42\n[1]\n{"silly":"this"}\n{nonsense\n\n{"type":"us')

    assert reading.outcomes == ["error"] * 6
    assert [problem.line for problem in reading.of(Problem)] == [1, 2, 3, 4, 5, 7]
    assert reading.reasons[-1].startswith("truncated")


def test_an_unknown_type_is_kept_as_it_stands(tell: Tell) -> None:
    raw = b'{"type": "oracle",  "says": 1}'

    reading = tell(raw + b"\n")

    (unknown,) = reading.of(Unknown)
    assert (unknown.type, unknown.raw) == ("oracle", raw.decode())
    assert unknown.key.startswith("line:")
    assert reading.outcomes == ["unknown"]
    assert reading.of(Begin)


def test_one_bad_item_costs_only_itself(tell: Tell) -> None:
    talk = Talk()
    talk.user([text("one"), {"type": "text", "txt": "two"}, text("three")])

    reading = tell(talk)

    assert [text for _, text in reading.said] == ["one", "three"]
    assert reading.outcomes == ["error"]


def test_half_a_surrogate_pair_and_large_numbers_are_read(tell: Tell) -> None:
    talk = Talk()
    talk.user("half \ud83d")
    talk.says("m1", tool_use("t1", input={"n": 10**30}))

    reading = tell(talk)

    assert reading.said == [("user", "half \ufffd"), ("tool_call", f'{{"n":{10**30}}}')]


# Whatever is done to a file, it is read to its end


def whole() -> Talk:
    """A talk that holds a little of everything."""
    talk = Talk()
    talk.add("progress", data={})
    talk.user("go")
    talk.attach("file", filename="/a", content={"type": "text", "file": {"content": "x"}})
    talk.says("m1", {"type": "thinking", "thinking": "hm", "signature": "s"})
    one = talk.calls("m1", "t1")
    talk.calls("m1", "t2")
    talk.result("t2", [text("two"), {"type": "tool_reference", "tool_name": "x"}])
    talk.result("t1", "one", parentUuid=one, toolUseResult={"agentId": "a1"})
    answer = talk.says("m2", text("done"), output=5)
    talk.user("wrong")
    talk.user("right", parentUuid=answer)
    side = talk.user("count", isSidechain=True, parentUuid=None)
    talk.says("m5", text("3"), isSidechain=True, parentUuid=side)
    talk.boundary(preservedSegment={"headUuid": one, "tailUuid": answer})
    talk.summary()
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    talk.user([{"type": "image", "source": source}])
    talk.entries.append({"type": "ai-title", "aiTitle": "t", "sessionId": SESSION})
    talk.entries.append({"type": "queue-operation", "operation": "enqueue", "content": "q"})
    talk.add("later", some="thing")
    return talk


def check(path: Path, raw: bytes) -> Reading:
    """Read to the end; every line that is not blank has exactly one outcome."""
    reading = reading_of(path, raw)

    assert len(reading.of(EntryRead)) == sum(1 for line in raw.split(b"\n") if line.strip())
    assert set(reading.outcomes) <= {"imported", "skipped", "unknown", "error"}
    offsets = [step.offset for step in reading.of(EntryRead)]
    assert offsets == sorted(offsets)
    assert all(offset <= len(raw) for offset in offsets)
    check_steps(reading)
    return reading


def check_steps(reading: Reading) -> None:
    """Steps stand in a session, name what was said in it, and answer what is open."""
    current = ""
    said: set[tuple[str, str | None]] = set()
    open_calls: set[tuple[str, str]] = set()
    for step in reading.steps:
        match step:
            case Begin(key=key):
                current = key
            case Append(block=block, source_id=source_id):
                said.add((current, source_id))
                match block:
                    case ToolCall(tool_call_id=call):
                        open_calls.add((current, call))
                    case ToolResult(tool_call_id=call):
                        assert (current, call) in open_calls
                    case _:
                        pass
            case Rewind(to=to):
                assert to is None or (current, to) in said
            case Compacted(kept=kept):
                assert {(current, id) for id in kept} <= said
            case Call() | Unknown():
                assert current
            case _:
                pass


def test_the_whole_talk_has_few_problems(tmp_path: Path) -> None:
    reading = check(tmp_path / f"{SESSION}.jsonl", whole().raw())

    assert Counter(reading.outcomes) == {"imported": 17, "skipped": 1, "unknown": 1}
    assert len(reading.of(Rewind)) == len(reading.of(Compacted)) == 1


def test_a_file_cut_off_anywhere_is_read(tmp_path: Path) -> None:
    raw = whole().raw()
    line_ends = {at + n for at, byte in enumerate(raw) if byte == ord("\n") for n in (0, 1, 2)}

    for end in sorted({*range(0, len(raw), 11), *line_ends}):
        check(tmp_path / "cut.jsonl", raw[:end])


def test_reading_a_file_that_has_grown_gives_the_same_keys(tmp_path: Path) -> None:
    raw = whole().raw()
    ends = [end + 1 for end, byte in enumerate(raw) if byte == ord("\n")]

    readings = [check(tmp_path / f"{SESSION}.jsonl", raw[:end]) for end in ends]

    keys = [[step.key for step in reading.of(Append)] for reading in readings]
    for earlier, later in pairwise(keys):
        assert later[: len(earlier)] == earlier


def test_a_file_with_any_byte_changed_is_read(tmp_path: Path) -> None:
    raw = whole().raw()
    chance = random.Random(1)  # noqa: S311 - mutilation, not cryptography

    for at in range(0, len(raw), 7):
        changed = bytearray(raw)
        changed[at] = chance.randrange(256)
        check(tmp_path / "changed.jsonl", bytes(changed))


@given(st.data())
def test_lines_dropped_doubled_and_shuffled_are_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    lines = whole().raw().splitlines(keepends=True)
    chosen = data.draw(st.lists(st.sampled_from(lines), max_size=2 * len(lines)))

    check(tmp_path_factory.getbasetemp() / "shuffled.jsonl", b"".join(chosen))


@given(st.permutations(range(6)))
def test_results_pair_wherever_they_stand_among_the_calls_of_their_message(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    talk = Talk()
    talk.user("go")
    calls = [talk.calls("m1", f"t{number}") for number in range(3)]
    for number, call in enumerate(calls):
        talk.result(f"t{number}", f"said {number}", parentUuid=call)
    talk.says("m2", text("done"))
    first, last = talk.entries[0], talk.entries[-1]
    written = [talk.entries[1 + place] for place in order]
    # A model writes its calls one after the other; only results move among them.
    called = iter(talk.entries[1:4])
    among = [next(called) if one["type"] == "assistant" else one for one in written]
    talk.entries = [first, *among, last]

    reading = check(tmp_path_factory.getbasetemp() / "side_by_side.jsonl", talk.raw())

    assert reading.reasons == []
    results = {block.tool_call_id for block in reading.blocks if isinstance(block, ToolResult)}
    assert results == {"t0", "t1", "t2"}
    assert reading.said[-1] == ("assistant", "done")


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where each value inside of `value` is."""
    found = [path] if path else []
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    for key, inner in pairs:
        found += paths(inner, (*path, key))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong", [None, True, 7, -1.5, "", "u5", [], {}, [None], {"type": "text"}, 10**40], ids=repr
)
def test_any_value_of_a_wrong_type_is_read(tmp_path: Path, wrong: Any) -> None:
    entries = whole().entries

    for path in paths(entries):
        changed = copy.deepcopy(entries)
        at: Any = changed
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = wrong
        check(tmp_path / "wrong.jsonl", b"\n".join(json.dumps(one).encode() for one in changed))


@pytest.mark.parametrize("depth", [300, 900, 1_010, 100_000])
def test_any_value_nested_deeply_is_read(tmp_path: Path, depth: int) -> None:
    lines = whole().raw().splitlines()
    deep = b"[" * depth + b"]" * depth

    for at, line in enumerate(lines):
        for field in (b'"content": ', b'"message": ', b'"input": ', b'"type": ', b'"data": '):
            head, found, tail = line.partition(field)
            if found:
                changed = head + field + deep + b', "rest": ' + tail
                check(tmp_path / "deep.jsonl", b"\n".join([*lines[:at], changed, *lines[at + 1 :]]))
