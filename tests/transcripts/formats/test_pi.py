"""Each branch of a session of pi becomes a fork, whose view is what pi itself would send there."""

import json
from pathlib import Path
from typing import Any

from claude_code_talk import Reading
from codex_written import CutAt
from pi_talk import SESSION, Talk, imported, sent, shown

from cutbank import Block, SessionStore, export, verify
from cutbank.adapters.transcripts.formats.catalog import recognize_format
from cutbank.adapters.transcripts.formats.pi import FORMAT
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.formats.steps import SessionStart
from cutbank.domain.compaction import RECORDED_LINEAGE


def branched() -> tuple[Talk, dict[str, str]]:
    """A session with compactions before and after its branches; the leaf of each session."""
    talk = Talk()
    talk.user("one")
    talk.says("two")
    third = talk.user("three")
    talk.says("four")
    talk.compacts("the first four", firstKeptEntryId=third)
    fork = talk.user("five")
    talk.says("six")
    kept = talk.user("seven")
    talk.compacts("the first six", firstKeptEntryId=kept)
    old = talk.says("eight")
    # From before the second compaction, and with one of its own.
    other = talk.user("another five", fork)
    talk.calls("c-1", path="b")
    talk.result("c-1", "another result")
    mine = talk.compacts("this branch's own", firstKeptEntryId=other)
    late = talk.says("another six")
    # From before the first compaction.
    early = talk.user("another four", third)
    # The old branch goes on, and compacts again.
    talk.user("nine", old)
    talk.compacts("the first nine", firstKeptEntryId=old)
    newest = talk.says("ten")
    # A branch of a branch, at its compaction; and one that shares nothing.
    nested = talk.user("yet another", mine)
    alone = talk.user("all anew", None)
    keys = {"": newest, other: late, early: early, nested: nested, alone: alone}
    return talk, {f"{SESSION}/branch-{key}" if key else SESSION: id for key, id in keys.items()}


def check_views(store: SessionStore, talk: Talk, leaves: dict[str, str]) -> None:
    for key, leaf in leaves.items():
        assert shown(store.session(key, create=False).view()) == sent(talk.entries, leaf), key
    assert verify(store).violations == []


def test_a_branch_shares_what_the_source_recorded_and_views_are_what_pi_would_send(
    store: SessionStore, tmp_path: Path
) -> None:
    talk, leaves = branched()

    report = imported(store, talk.write(tmp_path / "a.jsonl"))

    assert sorted(report.sessions) == sorted(leaves)
    check_views(store, talk, leaves)
    home, other, early, nested, alone = (store.session(key, create=False) for key in leaves)
    forks = [one.info.forked_from for one in (other, early, nested, alone)]

    assert all(fork and fork.lineage == RECORDED_LINEAGE for fork in forks)
    assert [fork.key for fork in forks if fork] == [home.key, home.key, other.key, home.key]
    assert forks[3]
    assert forks[3].position == 1
    lineages = [one.log.lineages for one in (home, other, early, nested)]
    assert lineages == [[RECORDED_LINEAGE], [RECORDED_LINEAGE], [], []]
    assert {one.info.source for one in (home, other, early, nested, alone)} == {"pi"}
    # Each lineage numbers its own: one boundary was there before the branch, one is its own.
    assert verify(store).boundaries >= 4
    assert nested.view().inherited_from == f"recorded of {other.key}"


def test_a_file_that_grows_by_branches_is_imported_as_if_at_once(
    store: SessionStore, tmp_path: Path
) -> None:
    talk, leaves = branched()
    lines = talk.raw().splitlines(keepends=True)
    path = tmp_path / "a.jsonl"

    added = 0
    for count in range(1, len(lines) + 1):
        path.write_bytes(b"".join(lines[:count]))
        added += imported(store, path).added
    again = imported(store, path)

    assert again.added == 0
    assert again.entries == len(lines)
    assert added == len(lines) - 1  # each but the header is one block, or marks a compaction
    check_views(store, talk, leaves)


def test_a_branch_alone_is_exported_as_a_session_of_its_own(
    store: SessionStore, tmp_path: Path
) -> None:
    talk, leaves = branched()
    imported(store, talk.write(tmp_path / "a.jsonl"))
    other = list(leaves)[1]

    export(store.session(other), "pi", tmp_path / "b.jsonl")
    (key,) = imported(store, tmp_path / "b.jsonl").sessions

    assert key not in leaves
    assert store.session(key).info.forked_from is None
    assert shown(store.session(key).view()) == shown(store.session(other).view())


def test_compacting_a_branch_builds_on_what_its_source_recorded(
    store: SessionStore, tmp_path: Path
) -> None:
    talk, leaves = branched()
    imported(store, talk.write(tmp_path / "a.jsonl"))
    home, nested = (store.session(list(leaves)[number], create=False) for number in (0, 3))
    before, beside = nested.view(), shown(home.view())
    nested.append(Block.user("and on " * 300), Block.assistant("yes " * 300))
    nested.append(Block.user("and on"))

    outcome = nested.compact(CutAt(nested.position))

    after = nested.view()
    assert outcome.compacted
    assert before.boundary
    assert after.boundary
    assert after.boundary.previous == before.boundary.originator_version
    assert [entry.block.text for entry in after.entries] == ["and on"]
    assert shown(home.view()) == beside
    nested.revert()
    assert shown(nested.view())[0] == "this branch's own"
    assert verify(store).violations == []


def test_a_branch_that_comes_later_does_not_see_what_was_compacted_here(
    store: SessionStore, tmp_path: Path
) -> None:
    talk = Talk()
    kept = talk.user("one " * 300)
    talk.says("two " * 300)
    talk.compacts("none of it", firstKeptEntryId=kept)
    talk.user("three")
    path = talk.write(tmp_path / "a.jsonl")
    imported(store, path)
    home = store.session(SESSION)
    assert home.compact(CutAt(home.position)).compacted
    mine = shown(home.view())
    on = talk.says("four")
    talk.user("another four", kept)
    beside = talk.user("another three", talk.entries[3]["id"])
    talk.user("five", on)

    report = imported(store, talk.write(path))

    assert shown(home.view()) == [*mine, "four", "five"]
    early, late = (store.session(key).view() for key in report.sessions[1:])
    assert shown(early) == ["one " * 300, "another four"]
    assert shown(late) == sent(talk.entries, beside)
    assert verify(store).violations == []


def test_a_cleared_context_begins_anew(store: SessionStore, tmp_path: Path) -> None:
    talk = Talk()
    talk.user("before")
    old = talk.says("yes")
    talk.add("reset_boundary")
    talk.user("after")
    talk.user("beside", old)

    report = imported(store, talk.write(tmp_path / "a.jsonl"))

    home, branch = (store.session(key).view() for key in report.sessions)
    assert [entry.block.text for entry in home.entries] == ["after"]
    assert [entry.block.text for entry in branch.entries] == ["before", "yes", "beside"]


def test_branches_that_leave_one_another_without_end_are_refused(tmp_path: Path) -> None:
    talk = Talk()
    at = talk.user("begin")
    talk.says("on")
    for _ in range(300):
        at = talk.user("branch", at)
        talk.says("on")

    reading = Reading(list(FORMAT.read(TranscriptSource(talk.write(tmp_path / "a.jsonl")))))

    assert len({begin.key for begin in reading.of(SessionStart)}) == 201
    assert "more than 200 branches" in reading.reasons[0]
    assert len(reading.outcomes) == len(talk.entries)


def test_a_session_is_told_by_its_first_lines(tmp_path: Path) -> None:
    session: dict[str, Any] = {"type": "session", "id": "s", "timestamp": "t"}
    title = {"type": "title", "v": 1, "title": ""}
    told: list[tuple[list[Any], str | None]] = [
        ([session | {"cwd": "/"}], "pi"),
        ([title, {"type": "session"}], None),
        ([title | {"pad": ""}, session | {"version": 3}], "oh-my-pi"),
        ([session | {"title": "x"}], "oh-my-pi"),
        ([session, {"type": "model_change", "model": "a/b"}], "oh-my-pi"),
        ([{"type": "message", "id": "1"}, session], None),
        ([session | {"id": 7}], None),
    ]
    path = tmp_path / "session.txt"
    for lines, name in told:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))

        found = recognize_format(TranscriptSource(path))

        assert (found.name if found else None) == name, lines
