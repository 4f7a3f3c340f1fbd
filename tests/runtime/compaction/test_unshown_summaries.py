"""Where a transcript does not tell a summary, what it stood for is summed up from the log."""

from collections.abc import Callable
from pathlib import Path

import pytest
from agent_talk import Scripted
from codex_talk import Rollout, message, sealed
from codex_written import imported

from cutbank import Block, CompactionOptions, Draft, Material, Ranges, SessionStore, StoredSession
from cutbank.domain.blocks import UNSENT_KINDS
from cutbank.domain.compaction import UNSHOWN_SUMMARIZER
from cutbank.domain.compaction_events import Summary

ASKED = "Never touch the migrations folder, and keep the port at 8472."
FILLER = "and so it went on, line after line, until there was nothing more to be said of it. " * 40


@pytest.fixture
def session(store: SessionStore, tmp_path: Path) -> StoredSession:
    """A session of Codex, whose compaction only its provider can read, and that went on."""
    told = Rollout()
    told.user(ASKED)
    told.calls("c1", name="shell", arguments='{"command": ["cat", "src/lock.py"]}')
    told.returns("c1", "one\n" * 200)
    told.says("I have read it.")
    told.user("Go on, then.")
    told.compacts(message("user", "Go on, then."), sealed())
    told.says(FILLER)
    told.user("And the tests?")
    told.says(FILLER)
    session = imported(store, tmp_path / "rollout.jsonl", told)
    assert summary_of(session).summarizer == UNSHOWN_SUMMARIZER
    session.append(Block.user("What now?"))
    return session


def summary_of(session: StoredSession) -> Summary:
    summary = session.view().summary
    assert summary is not None
    return summary


def compact(session: StoredSession, writes: Callable[[Material], Draft] | None = None) -> Summary:
    options = CompactionOptions(
        settings={"keep_tokens": "100"}, summarizers=[Scripted(writes)] if writes else None
    )
    session.compact("pi", limit=16_000, options=options)
    return summary_of(session)


def test_the_summary_tells_what_was_said_before(session: StoredSession) -> None:
    unknown = summary_of(session)

    now = compact(session)

    assert "migrations" in now.text
    assert unknown.text not in now.text
    assert not unknown.covers - now.covers


def test_a_summarizer_gets_all_that_its_text_stands_for(session: StoredSession) -> None:
    given: list[Material] = []

    def writes(material: Material) -> Draft:
        given.append(material)
        return Draft("They read a file.")

    now = compact(session, writes)

    stands_for = session.recall(now.covers)
    assert Ranges.of(item.position for item in given[0].removed_items) == Ranges.of(
        one.position for one in stands_for if one.block.kind not in UNSENT_KINDS
    )
    assert given[0].previous is None
    assert given[0].served_prompt is None
    assert 4 in now.digest.commands

    session.append(Block.assistant(FILLER), Block.user("Done?"), Block.assistant(FILLER))
    compact(session, writes)

    assert given[1].previous == "They read a file."
    assert all(item.block.text != ASKED for item in given[1].removed_items)
