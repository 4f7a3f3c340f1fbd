"""The claims of seed 003, each through a session that is kept, compacted and served."""

import json
from itertools import product
from typing import Any

import pytest
from agent_talk import FormWriter, talk

from cutbank import Block, CompactionOptions, LoopOptions, StoredSession, ToolCall, ToolResult
from cutbank.adapters.runtime.sessions.session_store import SessionStore
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.summaries.klaude_template import (
    KLAUDE_TEMPLATES,
    SUMMARY_INTRODUCTION,
    KlaudeVersion,
)
from cutbank.projections.history_view import HistoryView
from cutbank.projections.rendering.catalog import render_view

LIMIT = 8_000
RESERVE = 2_048
"""What the document leaves free of a limit of 8,000."""


def called(session: StoredSession, name: str, output: str = "done", **arguments: Any) -> None:
    at = f"c{session.position}"
    session.append(ToolCall(tool_call_id=at, name=name, arguments=arguments))
    session.append(ToolResult(tool_call_id=at, content=output))


def compact(
    session: StoredSession, writer: FormWriter | None = None, **settings: Any
) -> HistoryView:
    summarizers = [writer] if writer else None
    options = CompactionOptions(settings=settings, summarizers=summarizers)
    session.compact("klaude-code", limit=LIMIT, options=options)
    return session.view()


@pytest.mark.claim("S3.13")
def test_a_run_of_tools_is_compacted_though_no_user_says_anything(session: StoredSession) -> None:
    session.append(Block.user("Read all of it."))
    loop = session.loop(policy="klaude-code", limit=LIMIT)
    drawn = set()
    for number in range(90):
        called(session, "read", "r" * 400, path=f"file-{number}.py")
        boundary = loop.prepare().boundary
        drawn.add(boundary.after if boundary else 0)

    assert len(drawn) > 2
    assert session.view().tokens < LIMIT - RESERVE + 200


@pytest.mark.claim("S3.21", "S3.28", "S3.30")
def test_files_come_from_calls_and_from_the_programs_own_tracker(session: StoredSession) -> None:
    called(session, "read", path="read.py")
    called(session, "read", path="both.py")
    called(session, "edit", path="both.py", old="a", new="b")
    called(session, "write", path="new.py", content="x")
    talk(session, 10)
    loop = session.loop(
        policy="klaude-code@later",
        limit=LIMIT,
        options=LoopOptions(
            settings={"keep_tokens": 200, "reserve_tokens": 7_000, "answer_tokens": 0},
            tracked_files=lambda: ["tracked.py", "new.py"],
            summarizers=[FormWriter()],
        ),
    )

    view = loop.prepare()

    assert view.summary is not None
    assert view.summary.digest.read_files == ("read.py", "tracked.py")
    assert view.summary.digest.modified_files == ("both.py", "new.py")


@pytest.mark.claim("S3.26")
def test_a_summary_says_that_it_is_one(store: SessionStore) -> None:
    """Ruling: whoever wrote it, the view marks it; what is joined by the form says it as well."""
    for keep, way in product([210, 110], [None, *KlaudeVersion]):
        session = talk(store.session(f"{way} {keep}"), 10)
        form = (way or KlaudeVersion.DOCUMENT).value
        view = compact(session, FormWriter() if way else None, keep_tokens=keep, form=form)

        assert view.summary is not None, session
        is_split = view.boundary is not None and view.boundary.split_turn is not None
        assert is_split is (keep == 210), session
        is_framed = way is KlaudeVersion.DOCUMENT or (way is not None and is_split)
        assert view.summary.text.startswith(SUMMARY_INTRODUCTION) is is_framed, session
        sent = json.dumps(render_view(view, "anthropic"))
        assert "A summary of what came before" in sent, session


@pytest.mark.claim("S3.27")
def test_goal_progress_decisions_and_next_steps_are_asked_for_and_written(
    session: StoredSession,
) -> None:
    wanted = ("Goal", "Progress", "Key Decisions", "Next Steps")
    for form in KLAUDE_TEMPLATES.values():
        assert all(any(s.startswith(name) for s in form.sections) for name in wanted)
        assert {f"Progress: {part}" for part in ("Done", "In Progress", "Blocked")} <= {
            *form.sections
        }
    session.append(Block.user("Build the parser, and never touch the migrations folder."))
    for number in range(8):
        called(session, "edit", path=f"src/parser{number}.py", old="a" * 200, new="b" * 200)
    session.append(Block.assistant("I decided to use a recursive descent, because it is simple."))
    session.append(Block.assistant("Next I will write the tests of the parser."))
    talk(session, 10)

    summary = compact(session, keep_tokens=200).summary
    assert summary is not None
    assert {"Goal", "Progress"} <= set(summary.sections)


@pytest.mark.claim("S3.34")
def test_reasons_are_threshold_overflow_and_manual() -> None:
    """A session at rest is compacted for a reason that klaude-code does not have."""
    assert set(Trigger) == {"threshold", "overflow", "manual", "idle"}
