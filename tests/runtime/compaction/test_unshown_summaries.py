"""Where a transcript does not tell a summary, what it stood for is summed up from the log."""

from pathlib import Path

import pytest
from codex_talk import Rollout, message, sealed
from codex_written import imported

from cutbank import Block, CompactionOptions, SessionStore, StoredSession
from cutbank.domain.blocks import UNSENT_KINDS
from cutbank.domain.compaction import UNSHOWN_SUMMARIZER
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.summarizer import Draft, Material

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
    standing = session.view().summary
    assert standing is not None
    assert standing.summarizer == UNSHOWN_SUMMARIZER
    session.append(Block.user("What now?"))
    return session


class Told:
    """Remembers what it was given."""

    name = "told"

    def summarize(self, material: Material) -> Draft:
        self.material = material
        return Draft("They read a file.")


def test_the_summary_tells_what_was_said_before_and_not_that_nobody_knows(
    session: StoredSession,
) -> None:
    unknown = session.view().summary
    assert unknown is not None

    session.compact("pi", limit=16_000, options=CompactionOptions(settings={"keep_tokens": "100"}))

    now = session.view().summary
    assert now is not None
    assert "migrations" in now.text
    assert unknown.text not in now.text
    assert not unknown.covers - now.covers


def test_a_summariser_is_given_all_that_its_text_will_stand_for(session: StoredSession) -> None:
    told = Told()

    session.compact(
        "pi",
        limit=16_000,
        options=CompactionOptions(settings={"keep_tokens": "100"}, summarizers=[told]),
    )

    now = session.view().summary
    assert now is not None
    given = Ranges.of(item.position for item in told.material.removed_items)
    stands_for = session.recall(now.covers)
    assert given == Ranges.of(
        one.position for one in stands_for if one.block.kind not in UNSENT_KINDS
    )
    assert told.material.previous is None
    assert told.material.served_prompt is None
    assert 5 in now.digest.commands


def test_the_next_summary_goes_on_with_the_one_before_it(session: StoredSession) -> None:
    session.compact(
        "pi",
        limit=16_000,
        options=CompactionOptions(settings={"keep_tokens": "100"}, summarizers=[Told()]),
    )
    session.append(Block.assistant(FILLER), Block.user("Done?"), Block.assistant(FILLER))
    told = Told()

    session.compact(
        "pi",
        limit=16_000,
        options=CompactionOptions(settings={"keep_tokens": "100"}, summarizers=[told]),
    )

    assert told.material.previous == "They read a file."
    assert all(item.block.text != ASKED for item in told.material.removed_items)
