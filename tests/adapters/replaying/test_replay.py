"""A replay of a stored session: what it says, what it stores, and what it refuses."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from databases import on_sqlite

from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.analysis.replaying.deciders import decider_named
from cutbank.adapters.analysis.replaying.recordings import recording_of
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
from cutbank.projections.replay.decider import Decider, Never
from cutbank.projections.replay.replay import replayed

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
    return session.position, session.lineages, session.view(), len(verify(store).violations)


# What it says


@on_sqlite
def test_a_decider_that_never_decides_sends_all_of_the_history(session: StoredSession) -> None:
    work(session, 5)
    recording = recording_of(session)
    decider: Decider = Never()  # for type checkers: it is a decider like any other

    sent = [(served.view(), served.call.sees) for served in replayed(recording, decider)]

    assert sent
    for view, sees in sent:
        blocks = [one.position for one in recording.log[:sees] if one.tokens]
        assert [entry.position for entry in view.entries] == blocks
        assert view.boundary is None


def test_a_replay_writes_nothing(store: SessionStore, session: StoredSession) -> None:
    work(session, 20)
    before = state(store, session)

    done = session.replay("pi", settings=SMALL, limit=LIMIT)

    assert done.compactions
    assert state(store, session) == before


@on_sqlite
def test_what_left_at_each_boundary_is_told_once(session: StoredSession) -> None:
    work(session, 30)

    done = session.replay("pi", settings=SMALL, limit=LIMIT)

    left = [handles for sent in done.calls for handles in sent.left]
    assert len(left) == len(done.compactions) > 2
    assert all(left)
    seen = left[0]
    for handles in left[1:]:
        assert not handles & seen
        seen |= handles
    kept = done.compactions[-1].boundary
    blocks = {at for at in range(1, kept.after + 1) if recording_of(session).at(at).tokens}
    assert {at for at in blocks if at not in kept.kept} == set(seen)


@on_sqlite
def test_nobody_compacts_where_none_decides(session: StoredSession) -> None:
    work(session, 20)

    done = session.replay("none", limit=LIMIT)

    assert not done.compactions
    assert done.refused == sum(sent.tokens > LIMIT for sent in done.calls) > 0
    assert done.peak == max(sent.tokens for sent in done.calls)


@on_sqlite
@pytest.mark.parametrize("policy", ["none", "recorded", "pi", "scored-pruning"])
@pytest.mark.parametrize(
    ("fill", "calls"),
    [
        (lambda _: None, 0),
        (lambda session: session.append(Block.user("one " * 900)), 0),
        (lambda session: session.append(Block.assistant("one " * 900)), 1),
        (lambda session: session.set_system_prompt("be brief"), 0),
    ],
)
def test_a_session_with_next_to_nothing_is_no_error(
    session: StoredSession, policy: str, fill: Callable[[StoredSession], Any], calls: int
) -> None:
    fill(session)

    done = session.replay(policy, limit=100)

    assert len(done.calls) == calls
    assert not done.compactions


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
        session.replay(Raises(), limit=LIMIT)


@on_sqlite
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"policy": "nobody"}, "nobody"),
        ({"policy": "pi@nothing"}, "nothing"),
        ({"policy": "pi", "settings": {"no_such": "1"}}, "no_such"),
        ({"policy": "none", "settings": {"keep_tokens": "1"}}, "none has no settings"),
        ({"policy": "pi", "limit": 0}, "limit cannot be 0"),
        ({"policy": "pi", "budget": 0}, "budget cannot be 0"),
        ({"policy": "pi", "summariser": "poet"}, "no summariser 'poet'"),
        ({"policy": "none", "lineage": "x"}, "decides nothing new"),
        ({"policy": "recorded", "lineage": "x"}, "decides nothing new"),
    ],
)
def test_what_cannot_be_is_refused(session: StoredSession, how: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSettingError, match=said):
        session.replay(**how)


# What it stores


def test_a_stored_lineage_shows_what_the_replay_showed(
    store: SessionStore, session: StoredSession
) -> None:
    work(session, 25)

    done = session.replay("pi", settings=SMALL, limit=LIMIT, lineage="what-if")

    assert done.lineage == "what-if"
    recording = recording_of(session)
    decider = decider_named(session, "pi", SMALL, LIMIT, recording=recording)
    for served in replayed(recording, decider, limit=LIMIT):
        view = served.view()
        stored = session.view(lineage="what-if", at=served.call.sees)
        assert stored.entries == view.entries
        assert stored.tokens == view.tokens == done.calls[served.call.number - 1].tokens
        assert (stored.summary and stored.summary.text) == (view.summary and view.summary.text)
    assert verify(store).violations == []
    assert session.view().boundary is None
    assert session.lineages == ["what-if"]


def test_an_agent_can_go_on_with_a_stored_lineage(session: StoredSession) -> None:
    work(session, 25)
    session.replay("pi", settings=SMALL, limit=LIMIT, lineage="what-if")
    before = session.view(lineage="what-if")
    work_on = session.loop(policy="pi", settings=SMALL, limit=LIMIT, lineage="what-if")

    work(session, 5)
    view = work_on.prepare()

    assert before.boundary
    assert view.boundary
    assert view.boundary.previous == before.boundary.originator_version


def test_a_fork_is_replayed_from_its_parents_first_event(
    store: SessionStore, session: StoredSession
) -> None:
    work(session, 12)
    fork = session.fork("fork")
    fork.append(Block.user("another way " * 50), Block.assistant("yes"))

    done = fork.replay("pi", settings=SMALL, limit=LIMIT, lineage="what-if")

    assert len(done.calls) == 13
    assert done.compactions[0].boundary.after < session.position
    assert fork.view(lineage="what-if").boundary is not None
    assert verify(store).violations == []


@pytest.mark.parametrize("lineage", ["main", "recorded", "shadow:pi", ""])
def test_a_replay_is_stored_under_no_name_that_means_something_else(
    session: StoredSession, lineage: str
) -> None:
    work(session, 2)

    with pytest.raises(CutbankError, match="lineage"):
        session.replay("pi", lineage=lineage)

    assert session.lineages == []


def test_a_lineage_is_stored_once(session: StoredSession) -> None:
    work(session, 20)
    session.replay("pi", settings=SMALL, limit=LIMIT, lineage="what-if")
    before = session.view(lineage="what-if")

    with pytest.raises(ConflictError, match="has a lineage 'what-if' already"):
        session.replay("pi", lineage="what-if")

    assert session.view(lineage="what-if") == before


# Views for other programs


@on_sqlite
def test_every_view_is_written_as_a_line(session: StoredSession, tmp_path: Path) -> None:
    session.set_system_prompt("be brief")
    work(session, 20)
    file = tmp_path / "views.jsonl"

    done = session.replay("pi", settings=SMALL, limit=LIMIT, dump_views=file)

    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [line["call"] for line in lines] == [sent.call for sent in done.calls]
    recording = recording_of(session)
    decider = decider_named(session, "pi", SMALL, LIMIT, recording=recording)
    for line, served in zip(lines, replayed(recording, decider, limit=LIMIT), strict=True):
        view = served.view()
        assert line["session"] == session.key
        assert line["position"] == served.call.sees + 1
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
        session.replay("pi", dump_views=file)

    assert file.read_text(encoding="utf-8") == "mine"


@on_sqlite
def test_a_replay_that_fails_leaves_no_half_of_a_file(
    session: StoredSession, tmp_path: Path
) -> None:
    work(session, 2)

    with pytest.raises(PolicyFailedError):
        session.replay(Raises(), dump_views=tmp_path / "views.jsonl")

    assert [file.name for file in tmp_path.iterdir() if "views" in file.name] == []


# Who writes


@on_sqlite
def test_a_budget_goes_before_the_policys(session: StoredSession) -> None:
    work(session, 30)

    small = session.replay("pi", settings=SMALL, limit=LIMIT, budget=60)

    texts = [one.summary for one in small.compactions]
    assert texts
    assert all(summary is not None and summary.tokens <= 66 for summary in texts)


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

    same = session.replay("pi", settings=SMALL, limit=LIMIT, summariser="recorded")
    sooner = session.replay("pi", settings=SMALL, limit=700, summariser="recorded")

    assert served.summary
    assert same.compactions[-1].summary
    assert same.compactions[-1].summary.text == served.summary.text
    assert same.summarisers == {"recorded": len(same.compactions)}
    assert same.stood_in == 0
    by = sooner.summarisers
    assert by["extractive"] == sooner.stood_in > 0
    assert sum(by.values()) == len(sooner.compactions)
    for one in sooner.compactions:
        assert one.summary
        if one.summary.summariser == "extractive":
            assert "recorded: no summary on record" in one.refused[0]


@on_sqlite
def test_the_record_is_told_as_it_was(session: StoredSession) -> None:
    work(session, 10)
    session.compact(Pi(keep_tokens=300, reserve_tokens=300), limit=LIMIT)
    session.append(Block.user("and now?"))
    session.append(Block.assistant("this"))

    done = session.replay("recorded")

    (one,) = done.compactions
    assert isinstance(one.boundary, CompactBoundary)
    assert one.boundary == session.view().boundary
    assert done.calls[-1].compactions == (one,)
