"""A replay of a stored session: what it says, what it stores, and what it refuses."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from databases import on_sqlite

import cutbank
from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.analysis.replaying.deciders import make_decider
from cutbank.adapters.analysis.replaying.recordings import read_recording
from cutbank.adapters.analysis.verifier import verify
from cutbank.domain.compaction_events import CompactBoundary
from cutbank.domain.errors import (
    ConflictError,
    CutbankError,
    ExportError,
    InvalidSettingError,
    PolicyFailedError,
)
from cutbank.domain.policies.pi import Pi
from cutbank.domain.window import Plan, Window
from cutbank.projections.replay.replay import replay_recording

LIMIT = 1_500
SMALL = {"keep_tokens": "300", "reserve_tokens": "300"}


def work(session: StoredSession, turns: int) -> None:
    """Turns in which an agent reads a file; no call is recorded, as in many transcripts."""
    for turn in range(turns):
        session.append(Block.user(f"question {turn} " + "q" * 200))
        session.append(
            Block.assistant(f"answer {turn}", message_id=f"m{turn}"),
            ToolCall(
                tool_call_id=f"c{turn}",
                name="read",
                arguments='{"path": "src/a \\"b\\".py", "lines": [1, 2]}',
                message_id=f"m{turn}",
            ),
        )
        session.append(ToolResult(tool_call_id=f"c{turn}", content=f"result {turn} " + "r" * 400))


def state(store: SessionStore, session: StoredSession) -> Any:
    """All that a replay must leave alone."""
    return session.position, session.log.lineages, session.view(), len(verify(store).violations)


# What it says


def test_a_replay_writes_nothing(store: SessionStore, session: StoredSession) -> None:
    work(session, 20)
    before = state(store, session)

    done = cutbank.replay(session, "pi", settings=SMALL, limit=LIMIT)

    assert done.compactions
    assert state(store, session) == before


@on_sqlite
def test_what_left_at_each_boundary_is_told_once(session: StoredSession) -> None:
    work(session, 30)

    done = cutbank.replay(session, "pi", settings=SMALL, limit=LIMIT)

    left = [handles for sent in done.calls for handles in sent.left_ranges]
    assert len(left) == len(done.compactions) > 2
    assert all(left)
    seen = left[0]
    for handles in left[1:]:
        assert not handles & seen
        seen |= handles
    kept = done.compactions[-1].boundary
    blocks = {at for at in range(1, kept.after + 1) if read_recording(session).get_event(at).tokens}
    assert {at for at in blocks if at not in kept.kept} == set(seen)


@on_sqlite
def test_a_session_with_next_to_nothing_is_no_error(store: SessionStore) -> None:
    rows: list[tuple[Callable[[StoredSession], Any], int]] = [
        (lambda _: None, 0),
        (lambda session: session.append(Block.user("one " * 900)), 0),
        (lambda session: session.append(Block.assistant("one " * 900)), 1),
        (lambda session: session.configure(system_prompt="be brief"), 0),
    ]
    for fill, calls in rows:
        for policy in ["none", "recorded", "pi", "scored-pruning"]:
            session = store.session(f"{policy} {fill}")
            fill(session)

            done = cutbank.replay(session, policy, limit=100)

            assert len(done.calls) == calls, (policy, fill)
            assert not done.compactions, (policy, fill)


@dataclass(frozen=True)
class Raises:
    """A policy with a mistake."""

    name: ClassVar[str] = "raises"

    def plan(self, _: Window) -> Plan | None:
        raise ZeroDivisionError("of its own making")


@on_sqlite
def test_a_policy_that_raises_is_told_with_the_call(session: StoredSession) -> None:
    work(session, 2)

    with pytest.raises(PolicyFailedError, match=r"raises failed at call 1 .* of its own making"):
        cutbank.replay(session, Raises(), limit=LIMIT)


@on_sqlite
def test_what_cannot_be_is_refused(session: StoredSession, subtests: pytest.Subtests) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"policy": "nobody"}, "nobody"),
        ({"policy": "pi@nothing"}, "nothing"),
        ({"policy": "pi", "settings": {"no_such": "1"}}, "no_such"),
        ({"policy": "none", "settings": {"keep_tokens": "1"}}, "none has no settings"),
        ({"policy": "pi", "limit": 0}, "limit cannot be 0"),
        ({"policy": "pi", "budget": 0}, "budget cannot be 0"),
        ({"policy": "pi", "summarizer": "poet"}, "no summarizer 'poet'"),
        ({"policy": "none", "lineage": "x"}, "decides nothing new"),
        ({"policy": "recorded", "lineage": "x"}, "decides nothing new"),
    ]
    for how, said in rows:
        with subtests.test(str(how)), pytest.raises(InvalidSettingError, match=said):
            cutbank.replay(session, **how)


# What it stores


def test_a_stored_lineage_shows_what_the_replay_showed(
    store: SessionStore, session: StoredSession
) -> None:
    work(session, 25)

    done = cutbank.replay(session, "pi", settings=SMALL, limit=LIMIT, lineage="what-if")

    assert done.lineage == "what-if"
    recording = read_recording(session)
    decider = make_decider("pi", recording, [], session.log.settings, settings=SMALL, limit=LIMIT)
    for served in replay_recording(recording, decider, limit=LIMIT):
        view = served.make_view()
        stored = session.view(lineage="what-if", at=served.call.last_seen_position)
        assert stored.entries == view.entries
        assert stored.tokens == view.tokens == done.calls[served.call.number - 1].tokens
        assert (stored.summary and stored.summary.text) == (view.summary and view.summary.text)
    assert verify(store).violations == []
    assert session.view().boundary is None
    assert session.log.lineages == ["what-if"]


def test_a_fork_is_replayed_from_its_parents_first_event(
    store: SessionStore, session: StoredSession
) -> None:
    work(session, 12)
    fork = session.fork("fork")
    fork.append(Block.user("another way " * 50), Block.assistant("yes"))

    done = cutbank.replay(fork, "pi", settings=SMALL, limit=LIMIT, lineage="what-if")

    assert len(done.calls) == 13
    assert done.compactions[0].boundary.after < session.position
    assert fork.view(lineage="what-if").boundary is not None
    assert verify(store).violations == []


def test_a_replay_is_stored_under_no_name_that_means_something_else(
    session: StoredSession, subtests: pytest.Subtests
) -> None:
    for lineage in ["main", "recorded", "shadow:pi", ""]:
        work(session, 2)

        with subtests.test(str(lineage)), pytest.raises(CutbankError, match="lineage"):
            cutbank.replay(session, "pi", lineage=lineage)

        assert session.log.lineages == [], lineage


def test_a_lineage_is_stored_once(session: StoredSession) -> None:
    work(session, 20)
    cutbank.replay(session, "pi", settings=SMALL, limit=LIMIT, lineage="what-if")
    before = session.view(lineage="what-if")

    with pytest.raises(ConflictError, match="has a lineage 'what-if' already"):
        cutbank.replay(session, "pi", lineage="what-if")

    assert session.view(lineage="what-if") == before


# Views for other programs


@on_sqlite
def test_every_view_is_written_as_a_line(session: StoredSession, tmp_path: Path) -> None:
    session.configure(system_prompt="be brief")
    work(session, 20)
    file = tmp_path / "views.jsonl"

    done = cutbank.replay(session, "pi", settings=SMALL, limit=LIMIT, dump_views=file)

    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [line["call"] for line in lines] == [sent.call for sent in done.calls]
    recording = read_recording(session)
    decider = make_decider("pi", recording, [], session.log.settings, settings=SMALL, limit=LIMIT)
    for line, served in zip(lines, replay_recording(recording, decider, limit=LIMIT), strict=True):
        view = served.make_view()
        assert line["session"] == session.key
        assert line["position"] == served.call.last_seen_position + 1
        assert line["tokens"] == view.tokens
        assert line["text"].startswith("be brief\n")
        for entry in view.entries:
            assert entry.position < line["position"]
            if not isinstance(entry.block, ToolCall):
                assert entry.text in line["text"]
        if view.boundary is None:
            assert "first_kept" not in line
        else:
            assert line["first_kept"] == view.boundary.first_kept
            assert view.summary
            assert view.summary.text in line["text"]
    assert 'read\nsrc/a "b".py\n1\n2\n' in lines[-1]["text"]


@on_sqlite
def test_no_file_is_written_over(session: StoredSession, tmp_path: Path) -> None:
    work(session, 2)
    file = tmp_path / "views.jsonl"
    file.write_text("mine", encoding="utf-8")

    with pytest.raises(ExportError, match="is there already"):
        cutbank.replay(session, "pi", dump_views=file)

    assert file.read_text(encoding="utf-8") == "mine"


@on_sqlite
def test_a_replay_that_fails_leaves_no_half_of_a_file(
    session: StoredSession, tmp_path: Path
) -> None:
    work(session, 2)

    with pytest.raises(PolicyFailedError):
        cutbank.replay(session, Raises(), dump_views=tmp_path / "views.jsonl")

    assert [file.name for file in tmp_path.iterdir() if "views" in file.name] == []


# Who writes


@on_sqlite
def test_recorded_summaries_are_taken_where_they_stand_for_what_leaves(
    session: StoredSession,
) -> None:
    loop = session.loop(policy=Pi(keep_tokens=300, reserve_tokens=300), limit=LIMIT)
    for turn in range(30):
        session.append(Block.user(f"question {turn} " + "q" * 200))
        loop.record_call(loop.prepare())
        session.append(Block.assistant(f"answer {turn} " + "a" * 200))
    served = session.view()

    same = cutbank.replay(session, "pi", settings=SMALL, limit=LIMIT, summarizer="recorded")
    sooner = cutbank.replay(session, "pi", settings=SMALL, limit=700, summarizer="recorded")

    assert served.summary
    assert same.compactions[-1].summary
    assert same.compactions[-1].summary.text == served.summary.text
    assert same.summarizer_counts == {"recorded": len(same.compactions)}
    assert same.fallback_count == 0
    by = sooner.summarizer_counts
    assert by["extractive"] == sooner.fallback_count > 0
    assert sum(by.values()) == len(sooner.compactions)
    for one in sooner.compactions:
        assert one.summary
        if one.summary.summarizer == "extractive":
            assert "recorded: no recorded summary" in one.refused_drafts[0]


@on_sqlite
def test_the_record_is_told_as_it_was(session: StoredSession) -> None:
    work(session, 10)
    session.compact(Pi(keep_tokens=300, reserve_tokens=300), limit=LIMIT)
    session.append(Block.user("and now?"))
    session.append(Block.assistant("this"))

    done = cutbank.replay(session, "recorded")

    (one,) = done.compactions
    assert isinstance(one.boundary, CompactBoundary)
    assert one.boundary == session.view().boundary
    assert done.calls[-1].compactions == (one,)
